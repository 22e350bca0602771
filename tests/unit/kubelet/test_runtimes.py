"""RuntimeClasses that pods may name."""

import pytest

from isthmus.kubelet.admit import runtime_classes
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.podproto.reasons import Reason


def test_class_of_this_node_is_well():
    runtime_classes.check("containers", {"handler": "apptainer"})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, 'runtimeclass.node.k8s.io "kata" not found'),
        ({"handler": "kata-qemu"}, 'no runtime for "kata-qemu" is configured'),
        ({"handler": ""}, 'no runtime for "" is configured'),
    ],
)
def test_other_classes_are_reported(found, why):
    with pytest.raises(UnreadyError) as reported:
        runtime_classes.check("kata", found)
    assert reported.value.reason is Reason.SANDBOX
    assert reported.value.message.startswith(why)
