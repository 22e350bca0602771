"""Out of a container: to other containers of its pod, to the user who runs it, to the node.

The attacker's own control plane is what a hostile image would be after: its CA's key lies in the home, where no
container has anything to look for.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.clusters.user_clusters import namespace
from tests.support.wait import wait

MANIFEST = (Path(__file__).parent / "manifests/pods.yml").read_text()
FLAGS = "slurm-job.hpk.io/flags"
RACES_S = 60
READERS = 6
# Numbers of descriptors that the supervisor had open.
NUMBERS = range(12, 20)
EXECS = 5


@pytest.fixture(scope="session")
def home(login, attacker):
    """The attacker's home."""
    return login.output(f"getent passwd {attacker}").split(":")[5]


@pytest.fixture(scope="session")
def key(home):
    """The key of the attacker's CA."""
    return f"{home}/.isthmus/cluster/pki/ca.key"


@pytest.fixture(scope="session")
def space(attackers_cluster, images, key):
    """The attacker's pods."""
    text = MANIFEST.replace("KEY", key).replace("PKI", str(Path(key).parent))
    head, _, racing = text.rpartition("---\n")
    with namespace(attackers_cluster, "attack-pods", images, head) as found:
        # Of the last only its text is wanted, see `racing`.
        yield found, racing


def ask(pods, pod, ways, container="main"):
    """Run the script of each way in a container, all in one exec; return what each wrote."""
    pods.ready(f"pod/{pod}")
    script = "\n".join(f"echo '== {way}'\n( {text}\n) 2>/dev/null\necho" for way, text in ways.items())
    reported = pods.kubectl(f"exec {pod} -c {container} -- bash -c {shlex.quote(f'{script}{chr(10)}true')}")
    found = re.split(r"^== (.*)\n", f"{reported}\n", flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], (text.strip() for text in found[1::2]), strict=True))


def manifest(name, containers, annotations=None, **spec):
    """Return a pod that does not start again."""
    meta = {"name": name, "annotations": annotations or {}}
    whole = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": containers, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole})


@pytest.mark.attack("S3")
@pytest.mark.full
def test_folder_of_a_volume_is_swapped_with_a_link(space):
    """A subPath: six containers start again and again while a sidecar swaps the folder with a link."""
    pods, text = space
    mount = "volumeMounts: [{name: v, mountPath: /m, subPath: x}]"
    script = "cat /m/ca.key && sleep infinity; exit 1"
    readers = "".join(
        f"    - {{name: r{number}, image: debian, command: [sh, -c, '{script}'], {mount}}}\n"
        for number in range(READERS)
    )
    pods.apply(f"{text}  containers:\n{readers}")
    names = [f"r{number}" for number in range(READERS)]

    def tried():
        logs = [pods.try_kubectl(f"logs racing -c {name} {more}").stdout for name in names for more in ("", "-p")]
        assert not [log for log in logs if "PRIVATE KEY" in log]
        return [pods.container("racing", name).get("restartCount", 0) for name in names]

    # With its pauses each container has started four times by then.
    wait(tried, lambda counts: min(counts) >= 3, timeout_s=RACES_S * 3, interval_s=5)
    pods.kubectl("delete pod racing --wait=false")


@pytest.mark.attack("S9")
def test_process_that_enters_is_looked_into(space):
    """Memory, variables and descriptors of what probes and kubectl exec bring into a container."""
    pods, _ = space
    pods.ready("pod/watcher")
    pods.kubectl(
        f"exec watcher -c hostile -- true{'; kubectl --namespace attack-pods exec watcher -c hostile -- true' * EXECS}"
    )
    assert "CAUGHT" not in pods.kubectl("logs watcher -c hostile")


@pytest.mark.attack("S9")
@pytest.mark.full
def test_search_path_holds_up_who_enters(space, images):
    """An image's PATH of 12,000 folders, to have that process for longer."""
    pods, _ = space
    env = [{"name": "PATH", "value": "/none:" * 12000 + "/bin"}]
    pods.apply(manifest("long-path", [{"name": "main", "image": images["debian"], "command": ["true"], "env": env}]))
    pods.ended("long-path")
    reported = pods.container("long-path", "main")["state"]["terminated"]
    assert (reported["reason"], reported["message"].partition(";")[0]) == (
        "StartError",
        "PATH has 12001 folders, 64 at most",
    )


@pytest.fixture(scope="session")
def folders(space, images):
    """Statuses of containers that start in a descriptor of the program that starts them; a sidecar has its own file."""
    pods, _ = space
    script = "readlink /proc/self/cwd; cat tmp/mine; pwd -P"
    tried = [
        {"name": f"fd{number}", "image": images["debian"], "command": ["sh", "-c", script]}
        | {"workingDir": f"/proc/self/fd/{number}"}
        for number in NUMBERS
    ]
    sidecar = {"name": "sidecar", "image": images["debian"], "restartPolicy": "Always"}
    sidecar["command"] = ["sh", "-c", "echo private > /tmp/mine; sleep infinity"]
    pods.apply(manifest("folders", tried, initContainers=[sidecar]))
    pods.ended("folders")
    return pods


@pytest.mark.attack("S10")
@pytest.mark.parametrize("number", NUMBERS)
def test_working_folder_is_a_descriptor(folders, number):
    """A workingDir of /proc/self/fd/N, to begin in another container's root."""
    reported = folders.container("folders", f"fd{number}")["state"]["terminated"]
    assert reported["reason"] == "StartError", folders.kubectl(f"logs folders -c fd{number}")
    assert reported["message"].startswith("workingDir ")


def through_processes(key):
    """Look for a file by way of every process there is, and by those below a /proc that is taken away."""
    places = f"$p/root{key} $p/cwd{key} $p/fd/*{key}"
    look = f"for p in /proc/[0-9]*; do cat {places}; nsenter --mount=$p/ns/mnt cat {key}; done"
    return f"({look}; umount /proc; {look}) 2>/dev/null; true"


@pytest.mark.attack("S11")
@pytest.mark.parametrize("container", ["tracer", "privileged"])
@pytest.mark.parametrize("pod", ["shared", "alone"])
def test_file_of_the_node_by_other_processes(space, key, pod, container):
    """Roots, folders, descriptors, mounts of all processes that SYS_PTRACE or privileged shows."""
    ways = {"own": "ls -d /proc/self/root/etc/passwd", "node": through_processes(key)}
    found = ask(space[0], pod, ways, container)
    assert found == {"own": "/proc/self/root/etc/passwd", "node": ""}


@pytest.mark.attack("S11")
@pytest.mark.parametrize("profile", ["general", "sysadmin"])
def test_file_of_the_node_from_a_debug_container(space, images, key, profile):
    """The same from `kubectl debug --target`."""
    pods, _ = space
    pods.ready("pod/usual")
    name = f"debug-{profile}"
    options = f"--image={images['debian']} --target=main --profile={profile} --container={name} --attach=false"
    pods.kubectl(f"debug usual {options} -- bash -c {shlex.quote(through_processes(key) + '; echo looked')}")
    log = wait(lambda: pods.try_kubectl(f"logs usual -c {name}").stdout, lambda text: "looked" in text, timeout_s=60)
    assert "PRIVATE KEY" not in log


@pytest.fixture(scope="session")
def rank(space):
    """What a rank wrote of itself."""
    pods, _ = space
    return wait(lambda: pods.try_kubectl("logs ranks").stdout, lambda text: "CapBnd" in text, timeout_s=120)


@pytest.mark.attack("S12")
@pytest.mark.parametrize("way", ["PRIVATE KEY", " HOME ", " /var/tmp ext", "CapPrm:\t0000003", "CapEff:\t0000003"])
def test_rank_has_more_than_its_pod_says(rank, home, way):
    """Several tasks: home, the node's folders, capabilities."""
    assert way.replace("HOME", home) not in rank


@pytest.mark.attack("S12")
@pytest.mark.parametrize(
    "context",
    [{"runAsUser": 1000}, {"runAsGroup": 1000}, {"privileged": True}, {"capabilities": {"add": ["NET_RAW"]}}],
    ids=lambda context: next(iter(context)),
)
def test_pod_of_several_tasks_looks_confined_and_is_not(space, images, context):
    """Several tasks: what cannot be honoured is refused, not passed over."""
    pods, _ = space
    name = f"several-{next(iter(context)).lower()}"
    main = {"name": "main", "image": images["debian"], "command": ["true"], "securityContext": context}
    pods.apply(manifest(name, [main], {FLAGS: "--ntasks=2"}))
    assert pods.ended(name)["reason"] == "UnsupportedPod"


LOOKS = ["KEY", "HOME/.ssh", "/run/isthmus", "/run/munge", "/proc/1/rootKEY", "/proc/1/cwdKEY", "/etc/isthmus"]


@pytest.fixture(scope="session")
def looks(space, home, key):
    """What a pod without volumes sees."""
    ways = {look: f"ls -d {look.replace('KEY', key).replace('HOME', home)}" for look in LOOKS}
    found = ask(space[0], "usual", {**ways, "own": "ls -d /etc/passwd"})
    assert found["own"] == "/etc/passwd"
    return found


@pytest.mark.attack("pod")
@pytest.mark.parametrize("look", LOOKS)
def test_usual_pod_looks_around(looks, look):
    """A pod without volumes: home, sockets of the node, other processes."""
    assert looks[look] == ""


OTHERS = [
    *("home/VICTIM/.ssh", "home/VICTIM/.isthmus", "home/VICTIM", "root/.ssh", "root"),
    *("etc/munge/munge.key", "etc/isthmus/networkd.password", "etc/isthmus/tls/networkd.key"),
]


@pytest.fixture(scope="session")
def others(space, victim):
    """What a pod sees of others, and may write there, where it mounts folders of the node."""
    places = {way: f"/host/{way.replace('VICTIM', victim)}" for way in OTHERS}
    ways = {
        way: f"cat {place} || ls {place}/; touch {place}/x {place} && echo written" for way, place in places.items()
    }
    found = ask(space[0], "host", {**ways, "own": "ls -d /host/home"})
    assert found["own"] == "/host/home"
    return found


@pytest.mark.attack("pod")
@pytest.mark.parametrize("way", OTHERS)
def test_host_path_to_what_is_anothers(others, way):
    """A hostPath: other users' homes, root's, keys of the node."""
    assert others[way] == ""


RIGHTS = {
    "raw socket": "socket(S, 2, 3, 1)",
    "packet socket": "socket(S, 17, 3, 768)",
    "foreign source": "socket(S, 2, 2, 17) && bind(S, pack_sockaddr_in(700, inet_aton('10.64.0.1')))",
    "mac address": "socket(S, 2, 2, 0) && ioctl(S, 0x8924, pack('a16 S a14', $leg, 1, 'abcdef'))",
    "address": "socket(S, 2, 2, 0) && ioctl(S, 0x8916, pack('a16 S n a4 x8', $leg, 2, 0, inet_aton('10.64.9.9')))",
    "link down": "socket(S, 2, 2, 0) && ioctl(S, 0x8914, pack('a16 S', $leg, 0))",
    "neighbour": "socket(S, 2, 2, 0) && ioctl(S, 0x8955, pack('S x2 a4 x8 S a14 i a16 a16', 2, inet_aton('10.64.9.9'), "
    "1, 'abcdef', 6, '', $leg))",
    "mark": "socket(S, 2, 2, 17) && setsockopt(S, 1, 36, pack('i', 1))",
    "mount": "syscall(165, my $none = 'none', my $at = '/mnt', my $kind = 'tmpfs', 0, 0) == 0",
    "device": "syscall(133, my $disk = '/disk', 060600, 2048) == 0",
}


@pytest.fixture(scope="session")
def rights(space):
    """What became of each; that a socket can be had at all is no right."""
    leg = "($leg) = grep { $_ ne 'lo' } map { m{([^/]+)$} } glob '/sys/class/net/*'; $leg ||= 'eth0';"
    scripts = {way: f"{leg} print(({text}) ? qq(DONE) : qq(refused $!))" for way, text in RIGHTS.items()}
    scripts["own"] = "print(socket(S, 2, 2, 17) && bind(S, pack_sockaddr_in(0, INADDR_ANY)) ? qq(DONE) : $!)"
    found = ask(space[0], "usual", {way: f"perl -MSocket -e {shlex.quote(text)}" for way, text in scripts.items()})
    assert found["own"] == "DONE"
    return found


@pytest.mark.attack("pod")
@pytest.mark.parametrize("right", RIGHTS)
def test_right_over_the_network_or_the_node(rights, right):
    """MAC, address, neighbour, link, raw and packet sockets, foreign source, mark, mount, device."""
    assert rights[right].startswith("refused")


HOSTILE = {
    "parent": "tar --transform 's,^x$,../../../escaped,' -P -cf /evil.tar x",
    "absolute": "tar --transform 's,^x$,{home}/escaped,' -P -cf /evil.tar x",
    "link": "ln -sfn {home} l; tar -cf /evil.tar l; tar --transform 's,^x$,l/escaped,' -rf /evil.tar x",
}


@pytest.mark.attack("pod")
@pytest.mark.full
@pytest.mark.parametrize("way", HOSTILE)
def test_copy_from_a_pod_writes_elsewhere(space, login, attacker, home, way):
    """`kubectl cp` from a pod whose tar is hostile: `../`, a link, an absolute name."""
    pods, _ = space
    made = HOSTILE[way].format(home=home)
    script = f"mkdir -p /w; cd /w; echo evil > x; rm -f /evil.tar; {made}"
    fake = "printf '#!/bin/sh\\ncat /evil.tar\\n' > /usr/local/bin/tar; chmod 755 /usr/local/bin/tar"
    ask(pods, "usual", {"tar": f"rm -f /usr/local/bin/tar; {script}; {fake}"})
    login.run_as(attacker, "mkdir -p ~/copied/a")
    try:
        pods.try_kubectl("cp usual:w/x $HOME/copied/a/x")
        found = login.run_as(attacker, f"find {home} -maxdepth 2 -name 'escaped*'; find / -maxdepth 1 -name 'escaped*'")
        assert found.strip() == ""
    finally:
        login.run_as(attacker, "rm -rf ~/copied ~/escaped")
        ask(pods, "usual", {"tar": "rm -f /usr/local/bin/tar"})
