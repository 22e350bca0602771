"""What users bring to a login host works in their login pod: rsync, X11, agents, tmux, mail, editors, notebooks.

The login host is the client too, as another host of the user's would be: there the user is outside of the pod.
"""

import shlex
import uuid
from urllib.parse import quote

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT
from tests.support.clusters.sessions import OPTIONS, inside, running, session, ssh, uid
from tests.support.wait import wait

PLACE = "/usr/local/lib/isthmus-test-desk.py"
DESK = f"python3 {PLACE}"
NOTEBOOK, FORWARDED, DISPLAY, FIRST_DISPLAY = 8899, 18899, 77, 6010
KEY = "open-sesame"


@pytest.fixture(autouse=True, scope="module")
def desk(login_pods, login):
    login.output(f"cat > {PLACE} <<'END'\n{(ROOT / 'tests/support/remote/desk.py').read_text()}\nEND")
    yield
    login.output(f"rm -f {PLACE}")


@pytest.fixture(autouse=True, scope="module")
def pod(login_pods, login, user):
    """A session that keeps the pod there."""
    with session(login, user):
        wait(lambda: ssh(login, user, "true").rc == 0)
        yield


@pytest.fixture
def folder(login, user):
    """A folder of the user's in the home."""
    made = login.run_as(user, "mktemp -d ~/isthmus-test.XXXX")
    yield made
    login.run_as(user, f"rm -rf {made}")


def needs(login, *programs):
    for program in programs:
        if login.run(f"command -v {program}").rc:
            pytest.skip(f"the login host has no {program}")


def connects(port):
    return f"timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"


def test_rsync_brings_a_tree_there_and_back(login, user, folder):
    needs(login, "rsync")
    shell = f"rsync --rsh='ssh {OPTIONS}' --archive --delete"
    there = f"{login.name}:/tmp/{folder.rpartition('/')[2]}"
    make = "mkdir -p tree/sub; echo one > tree/sub/file; ln -s sub/file tree/link; chmod 750 tree/sub; echo > tree/old"
    login.run_as(user, f"cd {folder}; {make}; {shell} tree/ {there}; rm tree/old; {shell} tree/ {there}")
    assert login.run(f"test -e {there.partition(':')[2]}").rc != 0, "it is in the pod's own /tmp"
    login.run_as(user, f"cd {folder}; {shell} {there}/ back && diff -r tree back && test ! -e back/old")
    assert login.run_as(user, f"cd {folder}/back; cat link; stat -c %a sub").split() == ["one", "750"]


@pytest.fixture(scope="module")
def screen(login, user):
    """What stands in for an X server of the user's, at the client."""
    needs(login, "xauth")
    with running(login, user, f"{DESK} display {DISPLAY}"):
        wait(lambda: login.run(connects(6000 + DISPLAY)).rc == 0)
        yield f"DISPLAY=127.0.0.1:{DISPLAY}"


def test_x11_is_forwarded_into_the_pod(login, user, screen):
    drawn = login.run_as(user, f"{screen} ssh -X -o ForwardX11Trusted=yes {OPTIONS} {login.name} {DESK} draw")
    assert drawn == "no screen for MIT-MAGIC-COOKIE-1"


def test_forwarded_display_is_its_users_alone(login, user, other_user, screen):
    with session(login, user, "sleep 300", "-X -o ForwardX11Trusted=yes", environment=screen):
        wait(lambda: ssh(login, user, connects(FIRST_DISPLAY)).rc == 0)
        assert ssh(login, other_user, connects(FIRST_DISPLAY)).rc != 0
        assert login.try_as(other_user, connects(FIRST_DISPLAY)).rc != 0
        assert login.run(connects(FIRST_DISPLAY)).rc != 0


def test_forwarded_agent_signs_for_the_next_host_and_for_nobody_else(login, controller, computes, user, other_user):
    """As the only key there is: on a node where a job of the user's runs."""
    path = f"/tmp/isthmus-test-{uuid.uuid4().hex[:8]}"
    agent = f"SSH_AUTH_SOCK={path}"
    without_keys = "-F none -o IdentityFile=/dev/null"
    with running(login, user, f"ssh-agent -D -a {path}"):
        wait(lambda: login.run(f"test -S {path}").rc == 0)
        login.run_as(user, f"{agent} ssh-add -q")
        with (
            jobs.running(login, controller, user, f"--mem=50 --nodelist={computes[0].name}"),
            session(login, user, "echo $SSH_AUTH_SOCK > /tmp/agent; sleep 300", "-A", environment=agent),
        ):
            forwarded = wait(lambda: ssh(login, user, "cat /tmp/agent").stdout.strip())
            hop = f"ssh {OPTIONS} {without_keys} {computes[0].name} hostname"
            assert ssh(login, user, f"SSH_AUTH_SOCK={forwarded} {hop}").stdout.strip() == computes[0].name
            assert ssh(login, user, f"env -u SSH_AUTH_SOCK {hop}").rc != 0, "no key of the home serves"
            assert login.run(f"test -e {forwarded}").rc != 0
            assert ssh(login, other_user, f"test -e {forwarded}").rc != 0


def test_tmux_goes_on_in_further_sessions_and_is_seen_by_nobody_else(login, user, other_user):
    needs(login, "tmux")
    tmux = "tmux -L isthmus-test"
    inside(login, user, f"{tmux} new-session -d -s work 'echo begun; exec cat'")
    try:
        inside(login, user, f"{tmux} send-keys -t work again Enter")
        shown = wait(
            lambda: inside(login, user, f"{tmux} capture-pane -p -t work"), lambda text: text.count("again") == 2
        )
        assert shown.split()[0] == "begun"
        with session(login, user, f"TERM=xterm {tmux} attach -t work", "-tt"):
            wait(lambda: "xterm" in ssh(login, user, f"{tmux} list-clients").stdout)
        socket = f"/tmp/tmux-{uid(login, user)}/isthmus-test"
        assert inside(login, user, f"test -S {socket} && echo there") == "there"
        for place in (lambda: login.run(f"test -e {socket}"), lambda: ssh(login, other_user, f"test -e {socket}")):
            assert place().rc != 0
    finally:
        ssh(login, user, f"{tmux} kill-server")


def test_mail_is_read_and_sent_by_the_hosts_spool(login, user):
    """A mailbox is the host's; who sends has a program with the group of the spool, as Postfix and others have."""
    name = f"isthmus-test-{uuid.uuid4().hex[:8]}"
    spool, program, box = f"/var/spool/{name}", f"/usr/local/bin/{name}", f"/var/mail/{user}"
    kept = login.output(f"cat {box} 2>/dev/null | base64 --wrap=0")
    try:
        login.output(f"install -d -m 2730 -o root -g mail {spool}; install -m 2755 -g mail /usr/bin/tee {program}")
        login.output(f"install -m 660 -o {user} -g mail /dev/null {box}; echo 'From ctl' > {box}")
        assert inside(login, user, f"cat {box}") == "From ctl"
        assert ssh(login, user, f"echo no > {spool}/denied").rc != 0
        inside(login, user, f"echo sent | {program} {spool}/message >/dev/null")
        assert login.output(f"cat {spool}/message; stat -c '%U %G' {spool}/message").split() == ["sent", user, "mail"]
    finally:
        login.output(f"rm -rf {spool} {program} {box}")
        login.output(f"[ -z '{kept}' ] || {{ echo {kept} | base64 -d > {box}; chown {user}:mail {box}; }}")


@pytest.fixture
def editor(login, user, folder):
    """An editor's remote server, begun as editors do: a script for `bash -s`, whose session then ends; and its port."""
    begin = (
        f"cd {folder}; nohup {DESK} editor > log 2>&1 < /dev/null &\n"
        f"until grep -q listeningOn {folder}/log; do sleep 0.1; done; cat {folder}/log"
    )
    said = login.run_as(user, f"ssh -T {OPTIONS} {login.name} bash -s <<'END'\n{begin}\nEND")
    yield said.split("==")[1]
    ssh(login, user, f"pkill -u $(id -u) -f '{PLACE} edito[r]'")


@pytest.mark.parametrize("way", ["-L", "-D"])
def test_editors_server_is_reached_by_forwarding_and_goes_on_in_further_sessions(login, user, other_user, editor, way):
    there = f"-L 127.0.0.1:{FORWARDED}:127.0.0.1:{editor}" if way == "-L" else f"-D 127.0.0.1:{FORWARDED}"
    talk = f"{DESK} talk 127.0.0.1 {FORWARDED}" if way == "-L" else f"{DESK} talk localhost {editor} {FORWARDED}"
    heard = []
    for _ in range(2):
        with session(login, user, "sleep 300", there):
            heard.append(wait(lambda: login.try_as(user, talk).stdout.strip()))
    assert heard[0] == heard[1], "the same server"
    assert heard[0].count("heard") == 2
    assert inside(login, user, f"{DESK} call") == heard[0], "by its socket, as the editor's command does"
    assert inside(login, user, f"{DESK} talk 127.0.0.1 {editor}") == heard[0]
    for reached in (
        ssh(login, other_user, connects(editor)),
        login.try_as(other_user, connects(editor)),
        login.try_as(user, connects(editor)),
        ssh(login, other_user, f"{DESK} call"),
    ):
        assert reached.rc != 0


def test_notebook_is_reached_by_its_user_who_has_the_token(login, user, other_user):
    ask = f"{DESK} fetch 'http://127.0.0.1:{{}}/api/kernels?token={{}}'"
    with session(
        login,
        user,
        f"{DESK} notebook {NOTEBOOK} {KEY}",
        f"-L 127.0.0.1:{FORWARDED}:localhost:{NOTEBOOK}",
    ):
        mine = f"200 kernels of {uid(login, user)}"
        assert wait(lambda: login.try_as(user, ask.format(FORWARDED, KEY)).stdout.strip()) == mine
        assert inside(login, user, ask.format(NOTEBOOK, KEY)) == mine
        assert inside(login, user, ask.format(NOTEBOOK, quote("no"))).startswith("403")
        # Who knows the token, as it may be seen in a list of processes or in a home, has no way.
        for reached in (
            ssh(login, other_user, ask.format(NOTEBOOK, KEY)),
            login.try_as(other_user, ask.format(NOTEBOOK, KEY)),
        ):
            assert (reached.rc != 0, "kernels" in reached.stdout) == (True, False)


@pytest.fixture
def node(computes):
    """A compute node whose sessions are in pods of jobs, with the programs."""
    found = computes[0]
    if found.run("command -v xauth && grep -q 'pam_isthmus.so job' /etc/pam.d/sshd").rc:
        pytest.skip("sessions on compute nodes stay on the host, or have no xauth")
    found.output(f"cat > {PLACE} <<'END'\n{(ROOT / 'tests/support/remote/desk.py').read_text()}\nEND")
    yield found
    found.output(f"rm -f {PLACE}")


def test_x11_is_forwarded_into_a_jobs_pod_for_its_user_alone(login, controller, user, other_user, node, screen):
    """On a compute node the session is in the job's network: its localhost is the job's."""
    trusted = "-X -o ForwardX11Trusted=yes"
    options = f"--pod-network --mem=50 --nodelist={node.name}"
    with (
        jobs.running(login, controller, user, options),
        jobs.running(login, controller, other_user, options),
        session(login, user, "sleep 300", trusted, node=node.name, environment=screen),
    ):
        wait(lambda: ssh(login, user, connects(FIRST_DISPLAY), node=node.name).rc == 0)
        draw = f"{screen} ssh {trusted} {OPTIONS} {node.name} {shlex.quote(f'{DESK} draw')}"
        assert login.run_as(user, draw) == "no screen for MIT-MAGIC-COOKIE-1"
        assert ssh(login, other_user, connects(FIRST_DISPLAY), node=node.name).rc != 0
        assert node.run(connects(FIRST_DISPLAY)).rc != 0
