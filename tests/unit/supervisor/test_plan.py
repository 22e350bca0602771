"""What the supervisor makes of a plan, as far as that is text: host names, capabilities, Apptainer's command line."""

from pathlib import Path

import pytest

from isthmus.podproto import plan as plans
from isthmus.supervisor.runtime import linux, sandbox
from isthmus.supervisor.volumes import mounts as volumes
from isthmus.supervisor.volumes import podfiles
from tests.support.pods.plans import container, plan


def test_hosts_and_resolver():
    hosts = [{"address": "10.0.0.9", "names": ["a", "b"]}]
    made = plans.read(plan(fqdn="web-0.web.default.svc", hosts=hosts))
    assert podfiles.hosts(made, ["10.0.0.1"]).splitlines()[3:] == [
        "10.0.0.1\tweb-0.web.default.svc\tweb-0",
        "10.0.0.9\ta\tb",
    ]
    assert podfiles.resolv(made) == "nameserver 10.96.0.10\nsearch default.svc.cluster.local\noptions ndots:5\n"


@pytest.mark.parametrize(
    ("add", "drop", "reported"),
    [
        ([], [], sandbox.USUAL),
        (["SYS_TIME"], ["CHOWN"], (sandbox.USUAL | {"SYS_TIME"}) - {"CHOWN"}),
        (["CAP_CHOWN"], ["ALL"], {"CHOWN"}),
        (["ALL"], [], set(linux.CAPABILITIES)),
        (["ALL"], ["CHOWN"], set(linux.CAPABILITIES) - {"CHOWN"}),
    ],
)
def test_capabilities(add, drop, reported):
    made = plans.container(container("main", "", capabilities={"add": add, "drop": drop}), [])
    assert sandbox.identity(made).capabilities == reported


def test_command_line_quotes_any_path():
    folders = volumes.Folders(Path("/base"))
    mounts = [sandbox.bind('/a,"b', "/c:d", read_only=True)]
    made = plans.container(container("main", "", image="/i.squashfs"), [])
    words = sandbox.command(made, folders, "/base/roots/main", mounts)
    assert 'type=bind,"source=/a,""b",destination=/c:d,ro' in words
    assert words[-2:] == ["/i.squashfs", "/.isthmus/pause"]
    assert words[words.index("--overlay") + 1] == "/base/roots/main"
    # Whether the pod's containers share processes or not: none may see Apptainer's.
    assert "--pid" in words
