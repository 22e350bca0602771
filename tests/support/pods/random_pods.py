"""Random pods that the API server would take, with what kubelets often stumble over: for property tests."""

from typing import Any

from hypothesis import strategies as st

from isthmus.kubelet.slurm.annotations import PREFIX
from tests.support.pods.objects import UID

NAMES = st.sampled_from(["a", "b-1", "c"])
TEXTS = st.one_of(st.sampled_from(["", "$(A)", "$$(A)", "$(a", "'\"`", "x y\n", "$IP", "ä€"]), st.text(max_size=8))
QUANTITIES = st.sampled_from(["0", "1", "250m", "1500m", "64Mi", "1Gi", "1e3", "100k"])
PATHS = st.sampled_from(["/a", "/a/b", "/etc/x y", "/'"])
PORTS = st.one_of(st.integers(1, 65535), st.integers(1, 9).map(str), st.sampled_from(["http"]))
SMALL = st.integers(0, 100)
RARELY = st.integers(0, 9).map(lambda number: number == 0)
FIELDS = st.sampled_from(["metadata.name", "metadata.uid", "metadata.labels['x']", "status.podIP", "status.phase"])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def one_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with exactly one of these fields."""
    return st.one_of(*(st.fixed_dictionaries({name: value}) for name, value in fields.items()))


def few(element: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[list[Any]]:
    """Return short lists; objects in them differ in name."""
    key = lambda one: one.get("name", repr(one)) if isinstance(one, dict) else repr(one)  # noqa: E731
    return st.lists(element, min_size=least, max_size=2, unique_by=key)


def named(fields: st.SearchStrategy[dict[str, Any]], names: st.SearchStrategy[str] = NAMES) -> Any:
    """Return objects with a name."""
    return st.builds(lambda name, rest: {**rest, "name": name}, names, fields)


ACTIONS = {
    "exec": st.fixed_dictionaries({"command": few(TEXTS, 1)}),
    "httpGet": st.builds(lambda port, rest: {**rest, "port": port}, PORTS, some(path=TEXTS, host=NAMES)),
    "tcpSocket": st.fixed_dictionaries({"port": PORTS}),
}
PROBES = st.builds(
    lambda action, rest: {**action, **rest},
    one_of(**ACTIONS, grpc=st.fixed_dictionaries({"port": st.integers(1, 65535)})),
    some(periodSeconds=SMALL, failureThreshold=SMALL, terminationGracePeriodSeconds=SMALL),
)
HOOKS = one_of(**ACTIONS, sleep=st.fixed_dictionaries({"seconds": SMALL}))
KEY = st.fixed_dictionaries({"name": NAMES, "key": NAMES}, optional={"optional": st.booleans()})
SOURCES = one_of(
    configMapKeyRef=KEY,
    secretKeyRef=KEY,
    fieldRef=st.fixed_dictionaries({"fieldPath": FIELDS}),
    resourceFieldRef=st.fixed_dictionaries(
        {"resource": st.sampled_from(["limits.cpu", "requests.memory"])},
        optional={"divisor": st.sampled_from(["0", "1m", "1Mi"])},
    ),
)
REFERENCE = st.fixed_dictionaries({"name": NAMES}, optional={"optional": st.booleans()})
ITEMS = few(st.fixed_dictionaries({"key": NAMES, "path": NAMES}, optional={"mode": st.integers(0, 0o777)}))
DEVICES = st.sampled_from([{}, {}, {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": "2"}, {"x.org/y": 1}])
RESOURCES = st.builds(lambda one, two: {**one, **two}, some(cpu=QUANTITIES, memory=QUANTITIES), DEVICES)
SECURITY = some(
    runAsUser=st.sampled_from([0, 1, 1000, 65535, 70000]),
    runAsNonRoot=st.booleans(),
    privileged=RARELY,
    readOnlyRootFilesystem=st.booleans(),
    capabilities=some(add=few(st.sampled_from(["CHOWN", "KILL", "NET_RAW", "SYS_ADMIN"])), drop=st.just(["ALL"])),
)
PROPAGATION = st.sampled_from(["None", "HostToContainer", "Bidirectional"])
MOUNTS = few(
    named(
        st.fixed_dictionaries(
            {"mountPath": PATHS},
            optional={"readOnly": st.booleans(), "subPath": NAMES, "mountPropagation": PROPAGATION},
        )
    )
)
CONTAINER_FIELDS = {
    "image": st.sampled_from(["app", "root", "bare"]),
    "command": few(TEXTS),
    "args": few(TEXTS),
    "env": few(named(st.one_of(some(value=TEXTS), st.fixed_dictionaries({"valueFrom": SOURCES})))),
    "envFrom": few(one_of(configMapRef=REFERENCE, secretRef=REFERENCE)),
    "resources": some(requests=RESOURCES, limits=RESOURCES),
    "securityContext": SECURITY,
    "volumeMounts": MOUNTS,
    "livenessProbe": PROBES,
    "startupProbe": PROBES,
    "lifecycle": some(postStart=HOOKS, preStop=HOOKS),
    "ports": few(named(st.fixed_dictionaries({"containerPort": st.integers(1, 65535)}), st.just("http"))),
    "tty": st.booleans(),
    "terminationMessagePolicy": st.sampled_from(["File", "FallbackToLogsOnError"]),
}
VOLUMES = one_of(
    emptyDir=some(medium=st.sampled_from(["", "Memory"]), sizeLimit=QUANTITIES),
    hostPath=st.fixed_dictionaries({"path": PATHS}, optional={"type": st.sampled_from(["", "Socket"])}),
    configMap=st.builds(lambda one, items: {**one, "items": items}, REFERENCE, ITEMS),
    secret=st.builds(lambda name, mode: {"secretName": name, "defaultMode": mode}, NAMES, st.integers(0, 0o777)),
    downwardAPI=some(
        items=few(st.fixed_dictionaries({"path": NAMES, "fieldRef": st.fixed_dictionaries({"fieldPath": FIELDS})}))
    ),
    persistentVolumeClaim=st.builds(lambda name: {"claimName": name}, NAMES),
    projected=some(
        sources=few(one_of(configMap=REFERENCE, serviceAccountToken=st.fixed_dictionaries({"path": NAMES})))
    ),
    nfs=st.just({"server": "s", "path": "/"}),
)


@st.composite
def containers(draw: st.DrawFn, kind: str) -> list[dict[str, Any]]:
    """Draw one or two containers, of names that no other kind has; init containers may be sidecars."""
    sidecar = {"restartPolicy": st.just("Always")} if kind == "init" else {}
    found = draw(
        st.lists(
            some(**CONTAINER_FIELDS, **sidecar), min_size=1, max_size=2 if kind == "init" else draw(st.integers(1, 2))
        )
    )
    return [{"image": "app", **one, "name": f"{kind}{index}"} for index, one in enumerate(found)]


def _annotations() -> st.SearchStrategy[dict[str, str]]:
    flags = st.sampled_from(
        ["", "--time=5", "-C x", "--nice=1", "-p a -t1", "-N 2 --exclusive", "--wrap=id", "'", "--nice"]
    )
    mpi = st.sampled_from(["", "-n 2", "--mpi=pmix"])
    return st.one_of(some(note=TEXTS), some(**{f"{PREFIX}/flags": flags}), some(**{f"{PREFIX}/mpi-flags": mpi}))


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a pod; the volumes that its containers mount are there."""
    main, init = draw(containers("main")), draw(st.one_of(st.just([]), containers("init")))
    mounted = {mount["name"] for one in [*main, *init] for mount in one.get("volumeMounts") or ()}
    volumes = [{"name": name, **draw(VOLUMES)} for name in sorted(mounted)]
    spec = draw(
        some(
            restartPolicy=st.sampled_from(["Always", "OnFailure", "Never"]),
            terminationGracePeriodSeconds=SMALL,
            activeDeadlineSeconds=st.integers(1, 10**6),
            hostNetwork=st.booleans(),
            hostPID=RARELY,
            shareProcessNamespace=st.booleans(),
            subdomain=NAMES,
            setHostnameAsFQDN=st.booleans(),
            dnsPolicy=st.sampled_from(["ClusterFirst", "Default", "None", "ClusterFirstWithHostNet"]),
            nodeSelector=some(gpu=st.sampled_from(["a100", "h100", "none"]), **{"kubernetes.io/os": st.just("linux")}),
            priority=st.integers(-(2**31), 10**9),
            securityContext=some(fsGroup=SMALL, runAsUser=SMALL, runAsNonRoot=st.booleans()),
            hostAliases=few(st.fixed_dictionaries({"ip": st.just("10.0.0.1")}, optional={"hostnames": few(NAMES)})),
        )
    )
    meta = {"name": "web", "namespace": "shop", "uid": UID, "annotations": draw(_annotations())}
    return {"metadata": meta, "spec": {**spec, "containers": main, "initContainers": init, "volumes": volumes}}
