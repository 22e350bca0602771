"""Files that repeat what another says are as `make generate` writes them: nobody keeps a copy by hand."""

import pytest

from handbook import generate
from tests.repo import tree

FILES = generate.files(tree.ROOT)


@pytest.mark.parametrize("path", FILES)
def test_file_is_as_generated(path):
    assert (tree.ROOT / path).read_text() == FILES[path], "run `make generate`"


def test_every_file_of_defaults_is_generated():
    assert {tree.shown(path) for path in tree.files("roles/*/defaults/*.yml")} <= FILES.keys()


SPEC = """---
argument_specs:
  main:
    short_description: Test
    options: &options
      network_one: {type: int, default: 3, description: One.}
      network_drivers:
        type: list
        choices: [old]
        default:
          - {a: 1}
          - b: 2
            c: "{{ d }}"
      network_none: {type: str, description: Without a default.}
      network_empty: {type: list, default: [], description: Empty.}
  renew:
    short_description: Again
    options: *options
"""


def test_new_variable_needs_its_argument_alone():
    """Its default is written as it stands there, quoted or not."""
    made = generate.defaults(SPEC)
    assert made == (
        '---\nnetwork_one: 3\nnetwork_drivers:\n  - {a: 1}\n  - b: 2\n    c: "{{ d }}"\nnetwork_empty: []\n'
    )
    assert generate.defaults("---\nargument_specs:\n  main:\n    options: {}\n") == ""


def test_new_program_is_a_choice():
    table = "releases: {one: {programs: {a: {}, b.yaml: {}}}, two: {programs: {c: {}}}}"
    spec = "\n      artifacts_programs:\n        choices:\n          - old\n        default: []\n"
    made = generate.programs("artifacts", spec, table)
    assert made == spec.replace("          - old\n", "          - a\n          - b.yaml\n          - c\n")
    assert generate.programs("base", spec, table) == spec


def test_new_driver_is_a_choice():
    assert "choices: [private, flannel, routed, cni]" in generate.chosen("network", SPEC)
    assert generate.chosen("base", SPEC) == SPEC
