"""A program waits for the cluster's Services, while its container is made; here no daemon takes them."""

import time

from isthmus.model.services import rows
from isthmus.supervisor.main import Timing
from tests.support.pods.plans import container, plan
from tests.support.pods.services import answering, place
from tests.support.wait import wait

SERVICES = {"type": "services", "whole": True, "set": rows({place(): answering("10.64.0.9:80")}), "drop": []}


def test_container_is_made_while_its_program_waits(pod):
    script = "cut -d ' ' -f 1 /proc/uptime"
    document = plan(container("main", script, image=str(pod.host.image)))
    kubelet = pod.launch().kubelet
    kubelet.wait(lambda: kubelet.hellos)
    kubelet.send(SERVICES)
    begun = time.clock_gettime(time.CLOCK_BOOTTIME)
    kubelet.start({**document, "uid": pod.folder.name})
    # Another pod's may run on the machine, so this one's descendants are looked through.
    wait(lambda: set(pod.below(pod.supervisor())) & set(pod.processes(b"squashfuse_ll")))
    refused = kubelet.exec("main", "true").refusal()
    assert "main is not running" in refused
    kubelet.ended()
    ran = float((pod.folder / "logs/main/0.log").read_text().split()[-1])
    # The container was there at once, so what is left of the limit is the wait.
    assert ran - begun > Timing().services_s - 2
