import json

import pytest

from isthmus.node.manifest import Field, ManifestError, When, applies, filled, parse
from tests.support.fakes.join_controller import MANIFEST

KNOWN = {Field.NAME: "c3", Field.ADDRESS: "192.0.2.3", Field.RESOLVER: "resolv.conf"}


def test_manifest_is_read():
    found = parse(json.dumps(MANIFEST))
    assert found.nodes == MANIFEST["nodes"]
    assert found.units == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("[]", "schema 1 was expected"),
        (json.dumps({**MANIFEST, "schema": 2}), "schema 1 was expected"),
        (json.dumps({**MANIFEST, "more": []}), "other fields"),
        (json.dumps({name: value for name, value in MANIFEST.items() if name != "units"}), "other fields"),
        (json.dumps({**MANIFEST, "units": {}}), "units is of another kind"),
        (json.dumps({**MANIFEST, "nodes": []}), "nodes is of another kind"),
        (json.dumps({**MANIFEST, "release": 3}), "release is of another kind"),
    ],
)
def test_other_text_is_refused_with_the_remedy(text, words):
    with pytest.raises(ManifestError, match=words) as refused:
        parse(text)
    assert "playbooks/join.yml" in str(refused.value)


def test_fields_are_filled_in_everywhere():
    reported = [{"content": "at @isthmus.address@, @isthmus.name@\n", "mode": "0644", "optional": True}]
    assert filled(reported, KNOWN) == [{"content": "at 192.0.2.3, c3\n", "mode": "0644", "optional": True}]


def test_unknown_field_is_refused():
    with pytest.raises(ManifestError, match="'colour'"):
        filled("@isthmus.colour@", KNOWN)


def test_entry_is_for_hosts_of_its_kind():
    assert applies({"path": "/a"}, set())
    assert applies({"when": "machine"}, {When.MACHINE})
    assert not applies({"when": "machine"}, {When.RESOLVED})
    with pytest.raises(ManifestError, match="'blue'"):
        applies({"when": "blue"}, set())
