"""docs/admins/artifacts.md says what a fresh machine obtains and how."""

import re

from tests.repo import tree

ROW = re.compile(r"^\| ([a-z-]+) \| (.+) \| (always|on request) \| (the official release, else built|built) in .+ \|$")


def promised():
    """Release -> its programs, when it is obtained, and from where, as artifacts.yml has them."""
    return {
        name: (
            ", ".join(release["programs"]),
            "on request" if release.get("on_request") else "always",
            "the official release, else built" if "upstream" in release else "built",
        )
        for name, release in tree.load(tree.ROOT / "artifacts.yml")["releases"].items()
    }


def test_table_has_every_program_and_how_it_is_obtained():
    rows = [
        found.groups()
        for line in (tree.ROOT / "docs/admins/artifacts.md").read_text().splitlines()
        if (found := ROW.match(line))
    ]
    assert {name: tuple(rest) for name, *rest in rows} == promised()
