"""Which systems nodes may run: the docs say what the role checks."""

import re

from tests.repo import tree

ROW = re.compile(r"^\| ((?:Debian|Ubuntu)[^|]*) \|([^|]*)\|", re.MULTILINE)


def test_table_of_systems_is_what_preflight_takes():
    section = (tree.ROOT / "docs/admins/supported-systems.md").read_text()
    reported = {"slurm_manage: false" in layers: names.split(", ") for names, layers in ROW.findall(section)}
    checked = tree.load(tree.ROOT / "roles/base/vars/main.yml")
    assert reported == {False: checked["_base_supported_whole"], True: checked["_base_supported_adopted"]}
