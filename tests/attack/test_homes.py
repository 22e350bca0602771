"""What a user leaves in the home for root's playbooks: nothing outside changes, and everybody else is served."""

import json
import shlex
import subprocess

import pytest

from tests.support.attacks.home_traps import KEY, OUTSIDE_SCRIPT, OUTSIDE_STATE, SECRET, TRAPS
from tests.support.clusters import playbooks
from tests.support.clusters.cluster import BIN, ROOT, inventory_sources

pytestmark = pytest.mark.attack("S1")
OUTSIDE = "/var/lib/isthmus-trap"
GUARDED = f"{OUTSIDE_STATE.replace('OUTSIDE', OUTSIDE)}; stat -c '%n %U %a' / /etc /etc/shadow; ls /etc/ld.so.preload"


def account(name):
    return f"trap-{[*TRAPS].index(name)}"


def user_homes(controller, names):
    """Do as the role does for these users; return the module's answer."""
    users = [{"name": name, "comment": name, "keys": [KEY] if "trap" in name else []} for name in names]
    sources = [word for source in inventory_sources() for word in ("-i", source)]
    words = [*sources, controller.name, "--module-path", "roles/base/library", "-m", "user_homes"]
    command = [str(BIN / "ansible"), *words, "-a", json.dumps({"users": users})]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return unwrapped(done.stdout + done.stderr)


def unwrapped(text):
    """Warnings are broken into lines, also within a path."""
    return "".join(text.split())


def made(name):
    """Return the command that makes a user with a trap in the home."""
    script = shlex.quote(TRAPS[name].script.replace("OUTSIDE", OUTSIDE))
    return f"useradd -m --key HOME_MODE=0700 --no-user-group {account(name)} && su - {account(name)} -c {script}"


@pytest.fixture(scope="module")
def sprung(controller, victim):
    """A user for each trap, and what became of root's folder when the module had served them, the victim last."""
    removal = f"rm -rf {OUTSIDE}; for name in {' '.join(map(account, TRAPS))}; do userdel -rf $name; done; true"
    controller.run(removal)
    controller.output(OUTSIDE_SCRIPT.replace("OUTSIDE", OUTSIDE))
    try:
        controller.output("; ".join(map(made, TRAPS)))
        before = controller.run(GUARDED).stdout
        reported = user_homes(controller, [*map(account, TRAPS), victim])
        held = controller.run("cd /home; for f in trap-*/.ssh/authorized_keys; do test -f $f && grep -H . $f; done")
        yield reported, before, controller.run(GUARDED).stdout, held.stdout
    finally:
        controller.run(removal)


@pytest.mark.parametrize("name", TRAPS)
def test_trap_in_a_home(sprung, name):
    """Lead root by a link, pipe, folder or false key in ~/.ssh out of one's home."""
    reported, before, after, held = sprung
    trap, home = TRAPS[name], f"/home/{account(name)}"
    assert after == before
    assert SECRET not in reported
    assert (f"user{account(name)}:{home}/{trap.named}is" in reported) == bool(trap.named)
    assert (f"{account(name)}/.ssh/authorized_keys:{KEY}" in held) == trap.has_keys


def test_victim_is_served_after_the_traps(sprung, login, victim):
    """Stop others' keys by what one's own home holds."""
    shown = login.run_as(victim, "cat .ssh/authorized_keys; echo; cat .ssh/id_ed25519.pub; stat -c %a .ssh ~")
    keys, _, rest = shown.partition("\n\n")
    assert rest.splitlines()[0] in keys
    assert rest.splitlines()[1:] == ["700", "700"]


def test_process_that_keeps_an_account(controller, tmp_path):
    """Stop one's own removal, and the whole run, by a process; the home stays."""
    name, book = "trap-leaver", tmp_path / "users.yml"
    leaves = {"_base_present": [], "_base_absent": [{"name": name}], "_base_home_host": ""}
    look = {"base_state": {"absent": [name]}, "register": "__base_state"}
    role = {"ansible.builtin.include_role": {"name": "base", "tasks_from": "users"}, "vars": leaves}
    book.write_text(json.dumps([{"hosts": controller.name, "gather_facts": False, "tasks": [look, role]}]))
    places = {"ANSIBLE_ROLES_PATH": str(ROOT / "roles"), "ANSIBLE_LIBRARY": f"{ROOT}/library:{ROOT}/roles/base/library"}
    process = f"su - {name} -c 'sleep 60 > /dev/null 2>&1 & echo $!'"
    pid = controller.output(f"useradd --create-home {name} && {process}")
    try:
        result = playbooks.play("attack-leaver", str(book), environment=places)
        assert result.rc == 0, result.output
        assert controller.run(f"id {name}").rc != 0
        assert controller.run(f"ls /home/{name}").rc == 0
    finally:
        controller.run(f"kill {pid}; userdel -f {name}; rm -rf /home/{name}")


@pytest.mark.full
def test_link_before_a_whole_playbook(controller, login, attacker, victim):
    """Make ~/.ssh a link to root's folder, or the public key a path, before playbooks/base.yml."""
    keep, back = "mv .ssh .ssh-kept", "rm -rf .ssh; mv .ssh-kept .ssh"
    controller.output(f"rm -rf {OUTSIDE}; {OUTSIDE_SCRIPT.replace('OUTSIDE', OUTSIDE)}")
    for name in ("link-to-folder", "public-key-url"):
        login.run_as(attacker, f"{keep}; {TRAPS[name].script.replace('OUTSIDE', OUTSIDE)}")
        before = controller.run(GUARDED).stdout
        try:
            result = playbooks.play("attack-homes", "playbooks/base.yml")
        finally:
            login.run_as(attacker, back)
        assert result.rc == 0
        assert controller.run(GUARDED).stdout == before
        assert f"user {attacker}: /home/{attacker}/{TRAPS[name].named} is".replace(" ", "") in unwrapped(result.output)
        assert SECRET not in result.output
    assert user_homes(controller, [attacker, victim]).count("changed:false") == 1
    controller.output(f"rm -r {shlex.quote(OUTSIDE)}")
