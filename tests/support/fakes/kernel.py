"""A node's kernel and what follows plans, as far as a daemon calls them: strict, and without any rights."""

from __future__ import annotations

from errno import EBUSY
from ipaddress import IPv4Address

from isthmus.clients.cni.attachments import Found
from isthmus.clients.cni.plugins import CniError
from isthmus.clients.netlink.networks import NetlinkError
from isthmus.model.network import Driver
from isthmus.model.node_network import NodePlan, SharedPod


class FakeKernel:
    """Holds a plan as the kernel would; a name in `failing` cannot be made."""

    def __init__(self):
        self.legs, self.pods, self.calls, self.failing = {}, {}, [], set()

    def observe(self):
        self.calls.append("observe")
        return NodePlan(dict(self.legs), dict(self.pods))

    def add_leg(self, leg):
        self._note("add", leg.name)
        self.legs[leg.vni] = leg

    def add_pod(self, pod):
        self._note("add", pod.namespace)
        assert pod.vni in self.legs
        self.pods[pod.job] = pod

    def change_leg(self, have, want):
        assert self.legs[want.vni] == have
        self._note("change", want.name)
        self.legs[want.vni] = want

    def remove_pod(self, job):
        self._note("remove", self.pods.pop(job).namespace)

    def remove_leg(self, vni):
        self._note("remove", self.legs.pop(vni).name)

    def _note(self, verb, name):
        self.calls.append(f"{verb} {name}")
        if name in self.failing:
            raise NetlinkError(f"make {name}", EBUSY)


class FakeFollower:
    """The packet filter, or the names: keeps what it was given, or fails."""

    def __init__(self, calls, name):
        self.calls, self.name, self.error = calls, name, None

    def follow(self, wanted, state):
        self.calls.append(self.name)
        if self.error:
            raise self.error


class FakeAttachments:
    """Holds pods of Flannel's network as the plugins would; a job in `failing` cannot be changed."""

    def __init__(self):
        self.pods, self.calls = {}, []
        self.broken, self.damaged, self.failing = set(), set(), set()

    def observe(self):
        return Found(dict(self.pods), frozenset(self.broken))

    def add(self, job, uid):
        self._note("add", job)
        assert job not in self.pods or job in self.damaged
        self.broken.discard(job)
        self.damaged.discard(job)
        self.pods[job] = SharedPod(Driver.FLANNEL, job, uid, IPv4Address("10.128.1.1") + job, IPv4Address("10.128.1.1"))
        return self.pods[job]

    def check(self, job):
        self._note("check", job)
        assert job in self.pods
        if job in self.damaged:
            raise CniError(f"{job} is damaged")

    def remove(self, job):
        self._note("remove", job)
        assert job in self.pods or job in self.broken
        self.pods.pop(job, None)
        self.broken.discard(job)

    def _note(self, verb, job):
        self.calls.append(f"{verb} {job}")
        if job in self.failing:
            raise CniError("plugin: no")
