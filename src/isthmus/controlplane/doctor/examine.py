"""`isthmus doctor`: what may keep a user's cluster from working, each with what to do about it.

An examination looks, and changes nothing that stays. One that cannot be made is itself a finding.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

from isthmus.clients import process
from isthmus.clients.kube.errors import KubeError
from isthmus.clients.process import ProcessError
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.controlplane import job
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.commands.context import Context, api, control_planes, jobs, read_json
from isthmus.controlplane.doctor import home as doctor_home
from isthmus.controlplane.doctor import keys as doctor_keys
from isthmus.controlplane.doctor.findings import Finding, Level
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.network import NetworkError
from isthmus.controlplane.versions import outlook

_SUBIDS = (Path("/etc/subuid"), Path("/etc/subgid"))
_RESTARTS = 3


def examine(context: Context) -> Iterator[Finding]:
    """Yield findings, each as soon as it is made."""
    steps: tuple[Callable[[Context], Iterator[Finding]], ...] = (
        _image,
        _versions,
        doctor_home.folder,
        doctor_home.room,
        doctor_home.syncs,
        doctor_home.locking,
        doctor_home.snapshots,
        _subids,
        _slurm,
        _network,
        doctor_keys.certificates,
        _cluster,
    )
    for step in steps:
        try:
            yield from step(context)
        except (OSError, ControlPlaneError) as error:
            yield Finding(Level.FAILURE, f"{step.__name__.strip('_')}: {error}", "see the words before")


def _image(context: Context) -> Iterator[Finding]:
    if not context.settings.image.is_file():
        yield Finding(Level.FAILURE, f"{context.settings.image} is missing", "an admin runs playbooks/kubernetes.yml")
        return
    try:
        process.run(["apptainer", "--quiet", "exec", "--containall", "--no-home", *_version(context)], timeout_s=60)
        yield Finding(Level.OK, f"the image {context.settings.image} starts")
    except ProcessError as error:
        yield Finding(Level.FAILURE, f"the image does not start: {error}", "an admin looks at layer apptainer here")


def _versions(context: Context) -> Iterator[Finding]:
    files = context.home.cluster
    found = outlook.look(files, context.settings.choices, user_options.read(files))
    if found.refusal:
        problem, _, remedy = found.refusal.partition("; ")
        yield Finding(Level.FAILURE, problem, remedy)
    for warning in found.warnings:
        problem, _, remedy = warning.rpartition("; ")
        yield Finding(Level.WARNING, problem, remedy)
    if not found.refusal and not found.warnings:
        yield Finding(Level.OK, f"the next start is by Kubernetes {found.next}")


def _version(context: Context) -> list[str]:
    return [str(context.settings.image), "/usr/local/bin/etcd", "--version"]


def _subids(_: Context) -> Iterator[Finding]:
    user = pwd.getpwuid(os.getuid()).pw_name
    for file in _SUBIDS:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        names = {line.split(":")[0] for line in lines}
        if names & {user, str(os.getuid())}:
            yield Finding(Level.OK, f"{file} has ids for {user}")
        else:
            remedy = "an admin names the user in apptainer_subids; until then no container has other users inside"
            yield Finding(Level.WARNING, f"{file} has no ids for {user}", remedy)


def _slurm(context: Context) -> Iterator[Finding]:
    wanted = job.submission(
        context.settings, user_options.read(context.home.cluster), context.home.cluster, context.python
    )
    try:
        slurm_jobs.try_submit(wanted.options, wanted.script)
        yield Finding(Level.OK, "Slurm takes the control plane's job")
    except ProcessError as error:
        said = error.stderr.strip().splitlines()[-1:] or [str(error)]
        remedy = "ask for another with `isthmus up --partition, --account, --qos, --time, --memory`"
        yield Finding(Level.FAILURE, f"Slurm refuses the control plane's job: {said[0]}", remedy)


def _network(context: Context) -> Iterator[Finding]:
    if context.network is None:
        words = f"jobs have no private network here (driver {context.settings.driver})"
        yield Finding(Level.WARNING, words, "Services are names alone, and ports are shared with others on the node")
        return
    try:
        context.network.join()
        yield Finding(Level.OK, "this host reaches your network")
    except NetworkError as error:
        yield Finding(Level.FAILURE, str(error), "an admin looks at isthmus-networkd on this host")


def _cluster(context: Context) -> Iterator[Finding]:
    mine = control_planes(jobs())
    if not mine:
        yield Finding(Level.OK, "the control plane is down; `isthmus up` starts it")
        return
    state = read_json(context.home.cluster.state)
    if state is None or state.get("job") != mine[0].id:
        words = f"job {mine[0].id} is {mine[0].state} ({mine[0].reason}) and not ready"
        yield Finding(Level.WARNING, words, "`isthmus up` waits for it, `isthmus logs job` shows what it does")
        return
    yield from _answer(context, str(state["server"]))
    programs = (read_json(context.home.cluster.programs) or {}).get("programs", {})
    for name, each in programs.items():
        if each["state"] == "backoff" or each["restarts"] >= _RESTARTS:
            words = f"{name} was restarted {each['restarts']} times: {each['ended']}; {each['said']}"
            yield Finding(Level.FAILURE, words, f"`isthmus logs {name}`")


def _answer(context: Context, server: str) -> Iterator[Finding]:
    try:
        api(context.home, server).text("/readyz")
        yield Finding(Level.OK, f"{server} answers")
    except KubeError as error:
        yield Finding(
            Level.FAILURE, str(error), "`isthmus logs kube-apiserver`; `isthmus network list` has the address"
        )
    if not context.home.kubeconfig.exists() or server not in context.home.kubeconfig.read_text(encoding="utf-8"):
        remedy = "`isthmus down` and `isthmus up` write it again"
        yield Finding(Level.FAILURE, f"{context.home.kubeconfig} is not this cluster's", remedy)
