"""docs/admins/artifacts.md says what a fresh machine obtains and how."""

import re

from tests.repo import tree

FROM = "the official release, else built|built|the official release"
ROW = re.compile(rf"^\| ([a-z-]+) \| (.+) \| (always|on request) \| ({FROM}) .+ \|$")


def promised():
    """Release -> its programs, when it is obtained, and from where, as artifacts.yml has them."""
    return {
        name: (
            ", ".join(release["programs"]),
            "on request" if release.get("on_request") else "always",
            ", else ".join(origins(release)),
        )
        for name, release in tree.load(tree.ROOT / "artifacts.yml")["releases"].items()
    }


def origins(release):
    """The words for where its programs are from."""
    built = any("package" in program for program in release["programs"].values())
    return ["the official release"] * ("upstream" in release) + ["built"] * built


def test_table_has_every_program_and_how_it_is_obtained():
    rows = [
        found.groups()
        for line in (tree.ROOT / "docs/admins/artifacts.md").read_text().splitlines()
        if (found := ROW.match(line))
    ]
    assert {name: tuple(rest) for name, *rest in rows} == promised()
