"""Who asks the kubelet, by the certificate that Python's ssl has read."""

from types import SimpleNamespace

import pytest

from isthmus.kubelet.api import access
from isthmus.kubelet.api.access import Person

NAME, GROUP = ("commonName", "alice"), ("organizationName", "dev")


@pytest.mark.parametrize(
    ("subject", "person"),
    [
        (((NAME,), (GROUP,)), Person("alice", ("dev",))),
        (((NAME, GROUP),), Person("alice", ("dev",))),
        (((GROUP,),), None),
        ((), None),
    ],
    ids=["apart", "in one relative name", "nameless", "empty"],
)
def test_person_of_a_certificate(subject, person):
    transport = SimpleNamespace(get_extra_info=lambda key: {"subject": subject} if key == "peercert" else None)
    assert access._certified(SimpleNamespace(transport=transport)) == person
