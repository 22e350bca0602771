"""An alert is there within a minute of its fault, and goes when the fault does."""

import pytest

from tests.support.clusters import jobs, monitoring
from tests.support.wait import wait

pytestmark = pytest.mark.disruptive
LIMIT_S = 60
CERTIFICATE = "/etc/isthmus/tls/ends-soon"
MAKE = (
    f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=test -days 3"
    f" -keyout {CERTIFICATE}.key -out {CERTIFICATE}.crt"
)
FAULTS = {
    "DaemonDown": ("systemctl stop slurmd", "systemctl start slurmd"),
    "NodeUnfit": ("chmod 0600 /dev/fuse", "chmod 0666 /dev/fuse"),
    "CertificateEnds": (MAKE, f"rm -f {CERTIFICATE}.crt {CERTIFICATE}.key"),
}


@pytest.fixture
def faulty(computes, controller):
    """A node with three faults at once; afterwards without."""
    node = computes[-1]
    jobs.wait_for_nodes(controller, node.name)
    for make, _ in FAULTS.values():
        node.output(make)
    yield node
    for _, mend in FAULTS.values():
        node.output(mend)
    jobs.wait_for_nodes(controller, node.name, timeout_s=150)


def test_alerts_of_three_faults_come_within_a_minute(faulty, controller):
    wanted = {(name, faulty.name) for name in FAULTS}
    wait(lambda: monitoring.alerts(controller), lambda found: wanted <= found, timeout_s=LIMIT_S)
    shown = monitoring.page(controller, "/consoles/status.html")
    assert all(f"<td>{name}</td>" in shown for name in FAULTS)
    for _, mend in FAULTS.values():
        faulty.output(mend)
    mended = f"ALERTS{{alertstate='firing',instance='{faulty.name}',alertname=~'{'|'.join(FAULTS)}'}}"
    wait(lambda: monitoring.query(controller, mended), lambda found: not found, timeout_s=90)
