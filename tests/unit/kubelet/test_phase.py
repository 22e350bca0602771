"""A pod's phase, from the states of its containers."""

import pytest

from isthmus.kubelet.status.phase import phase

RUN = {"state": {"running": {}}, "started": True}
UNSTARTED = {"state": {"running": {}}, "started": False}
WAIT = {"state": {"waiting": {"reason": "ContainerCreating"}}}
OK = {"state": {"terminated": {"exitCode": 0}}}
BAD = {"state": {"terminated": {"exitCode": 3}}}
LOOP = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 3}}}
AGAIN = {"state": {"running": {}}, "started": True, "lastState": {"terminated": {"exitCode": 3}}}
PAUSE = {"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 0}}}


def found(policy, main, init=(), sidecars=(), final=False):
    """Return the phase of a pod of so many containers; None stands for one without a status."""
    names = {"m": main, "i": init, "s": sidecars}
    spec = {
        "restartPolicy": policy,
        "containers": [{"name": f"m{n}"} for n in range(len(main))],
        "initContainers": [
            *({"name": f"s{n}", "restartPolicy": "Always"} for n in range(len(sidecars))),
            *({"name": f"i{n}"} for n in range(len(init))),
        ],
    }
    reported = {
        key: [{"name": f"{key}{n}", **status} for n, status in enumerate(all_) if status] for key, all_ in names.items()
    }
    return phase(spec, [*reported["s"], *reported["i"]], reported["m"], final)


@pytest.mark.parametrize(
    ("main", "always", "on_failure", "never"),
    [
        ([WAIT], "Pending", "Pending", "Pending"),
        ([None], "Pending", "Pending", "Pending"),
        ([RUN], "Running", "Running", "Running"),
        ([RUN, WAIT], "Pending", "Pending", "Pending"),
        ([RUN, None], "Pending", "Pending", "Pending"),
        ([RUN, BAD], "Running", "Running", "Running"),
        ([OK], "Running", "Succeeded", "Succeeded"),
        ([BAD], "Running", "Running", "Failed"),
        ([OK, BAD], "Running", "Running", "Failed"),
        ([OK, OK], "Running", "Succeeded", "Succeeded"),
        ([LOOP], "Running", "Running", "Running"),
        ([LOOP, BAD], "Running", "Running", "Running"),
        ([PAUSE], "Running", "Running", "Running"),
        ([LOOP, RUN], "Running", "Running", "Running"),
        ([AGAIN], "Running", "Running", "Running"),
    ],
)
def test_containers_decide(main, always, on_failure, never):
    assert [found(policy, main) for policy in ("Always", "OnFailure", "Never")] == [always, on_failure, never]


@pytest.mark.parametrize(
    ("init", "main", "always", "never"),
    [
        ([WAIT], [WAIT], "Pending", "Pending"),
        ([RUN], [WAIT], "Pending", "Pending"),
        ([OK], [WAIT], "Pending", "Pending"),
        ([OK], [RUN], "Running", "Running"),
        ([BAD], [WAIT], "Pending", "Failed"),
        ([LOOP], [WAIT], "Pending", "Failed"),
        ([PAUSE], [WAIT], "Pending", "Pending"),
        ([AGAIN], [WAIT], "Pending", "Pending"),
        ([None], [None], "Pending", "Pending"),
        ([OK, RUN], [WAIT], "Pending", "Pending"),
        ([OK, OK], [OK], "Running", "Succeeded"),
    ],
)
def test_init_containers_hold_the_pod(init, main, always, never):
    assert [found(policy, main, init) for policy in ("Always", "Never")] == [always, never]


@pytest.mark.parametrize(
    ("sidecar", "main", "expected"),
    [
        (UNSTARTED, [WAIT], "Pending"),
        (RUN, [WAIT], "Pending"),
        (RUN, [RUN], "Running"),
        (RUN, [OK], "Running"),
        (UNSTARTED, [AGAIN], "Running"),
        (LOOP, [RUN], "Running"),
        (WAIT, [RUN], "Pending"),
        (OK, [OK], "Succeeded"),
        (BAD, [OK], "Succeeded"),
        (BAD, [BAD], "Failed"),
        (None, [RUN], "Pending"),
    ],
)
def test_sidecar_counts_while_it_runs(sidecar, main, expected):
    assert found("Never", main, sidecars=[sidecar]) == expected


@pytest.mark.parametrize(
    ("main", "init", "expected"),
    [
        ([OK], [], "Succeeded"),
        ([BAD], [], "Failed"),
        ([LOOP], [], "Failed"),
        ([PAUSE], [], "Failed"),
        ([WAIT], [], "Failed"),
        ([WAIT], [BAD], "Failed"),
        ([WAIT], [LOOP], "Failed"),
        ([OK], [OK], "Succeeded"),
    ],
)
def test_nothing_is_started_any_more(main, init, expected):
    assert found("Always", main, init, final=True) == expected
