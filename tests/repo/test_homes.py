"""Root follows no path that a user controls: tasks below homes are done as their owner, or by a module that does so.

A task's arguments, loop and variables are looked at, also by way of a role's variables; files that are included inherit
the `become_user` of who includes them. /tmp and its like are for `tempfile` alone, which makes a name nobody knows.
"""

import re
from functools import cache

import pytest
import yaml

from tests.repo import tree

HOME = re.compile(r"/home\b|~(?=[\w{/])|\.ssh/(id_|authorized)|\$\{?HOME\b|ansible_env|user_dir\b")
SHARED = re.compile(r"(?<![\w}])/(?:var/)?tmp\b|/dev/shm\b")
# They act as the user, and their own tests say so.
VETTED = {"user_homes", "registry_credentials"}
INCLUDES = {"include_tasks", "import_tasks"}
WORDS = {
    "name",
    "when",
    "register",
    "loop_control",
    "fail_msg",
    "tags",
    "notify",
    "changed_when",
    "failed_when",
    "until",
}
# Task -> why it may.
ALLOWED = {
    "base: Describe a node": "names the mount point, and does nothing",
    "base: Mount the shared home": "the mount point itself is root's",
    "kubernetes: Write the site for isthmus up; let bash complete the programs": "names a folder to users' programs",
}
HERE = tree.ROOT / "roles/main_job/tasks/main.yml"
BLOCKS = ("block", "rescue", "always")


def strings(value):
    """Every text in arguments."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in WORDS:
                yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    else:
        yield str(value)


@cache
def named_like(pattern, role):
    """The variables of a role whose value has such a path, also by way of each other."""
    values = {}
    for path in tree.files(f"roles/{role}/vars/*.yml", f"roles/{role}/defaults/*.yml"):
        values |= tree.load(path) or {}
    found = {name for name, value in values.items() if any(pattern.search(text) for text in strings(value))}
    for _ in values:
        found |= {name for name, value in values.items() if found & words(value)}
    return frozenset(found)


def words(value):
    return {word for text in strings(value) for word in re.findall(r"\w+", text)}


def beside(path, name):
    """The file that an include means: beside it, or from the role's tasks."""
    folders = [path.parent, *path.parents[1:3]]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def tasks_of(path, owner="root"):
    """Every task of a file and of those it includes, with its role and who it is."""
    return list(walk(path, tree.load(path) or [], owner))


def who(task, owner):
    return "deployer" if task.get("delegate_to") == "localhost" else task.get("become_user", owner)


def walk(path, tasks, owner):
    for task in tasks:
        mine = who(task, owner)
        for part in BLOCKS:
            yield from walk(path, task.get(part, []), mine)
        included = next((task[key] for key in task if key.rpartition(".")[2] in INCLUDES), {})
        reported = included if isinstance(included, dict) else {"file": included}
        if found := beside(path, reported["file"]) if reported else None:
            yield from tasks_of(found, who(reported.get("apply", {}), mine))
        if not set(task) & set(BLOCKS):
            yield path.relative_to(tree.ROOT).parts[1], task, mine


def is_included(path):
    """Return whether another file of the role includes it, so that it has no owner of its own."""
    role = tree.ROOT / path.relative_to(tree.ROOT).parents[-3]
    for other in role.glob("tasks/**/*.yml"):
        names = re.findall(r"(?:(?:include|import)_tasks|file): ([\w/.-]+\.yml)", other.read_text())
        if path in [beside(other, name) for name in names]:
            return True
    return False


@cache
def all_tasks():
    """Those of playbooks, and of each role by every way in."""
    found = []
    for path in tree.files("roles/*/tasks/*.yml"):
        if not is_included(path):
            found += tasks_of(path)
    for path in tree.files("playbooks/*.yml", "site.yml"):
        for play in tree.load(path):
            owner = "deployer" if play.get("hosts") == "localhost" else "root"
            for part in ("pre_tasks", "tasks", "post_tasks", "handlers"):
                found += walk(path, play.get(part, []), owner)
    return found


def offences(tasks):
    """`role: task` of what root does below a home or in a folder that everybody writes to."""
    for role, task, owner in tasks:
        if owner != "root" or VETTED & {key.rpartition(".")[2] for key in task}:
            continue
        reported = {key: value for key, value in task.items() if key not in WORDS}
        is_temporary = "ansible.builtin.tempfile" in task
        for pattern in (HOME,) if is_temporary else (HOME, SHARED):
            if any(pattern.search(text) for text in strings(reported)) or named_like(pattern, role) & words(reported):
                yield f"{role}: {task.get('name')}"
        if writes_home(task):
            yield f"{role}: {task.get('name')}"


def writes_home(task):
    """Return whether a module writes below a home by itself."""
    user = task.get("ansible.builtin.user") or {"create_home": False}
    makes = user.get("state") != "absent" and (user.get("create_home", True) or user.get("generate_ssh_key", False))
    return bool(makes) or "ansible.posix.authorized_key" in task


def test_no_task_of_root_works_below_a_home():
    assert set(offences(all_tasks())) == set(ALLOWED), "become the owner, use a vetted module, or add the reason"


def test_included_tasks_are_looked_at_with_their_owner():
    owners = {task.get("name"): owner for role, task, owner in all_tasks() if role == "main_job"}
    assert owners["Write program, job script and HPCC's input"] == "{{ main_job_user }}"


@pytest.mark.parametrize(
    "text",
    [
        "{name: x, ansible.builtin.slurp: {src: '/home/bob/.ssh/id_ed25519.pub'}}",
        "{name: x, ansible.builtin.file: {path: '~{{ main_job_user }}/folder', state: directory}}",
        "{name: x, ansible.builtin.copy: {content: a, dest: '{{ _main_job_dir }}/a'}}",
        "{name: x, ansible.builtin.command: cat a, args: {chdir: '{{ item }}'}, loop: [/home/bob]}",
        "{name: x, ansible.posix.authorized_key: {user: bob, key: k}}",
        "{name: x, ansible.builtin.user: {name: bob}}",
        "{name: x, ansible.builtin.user: {name: bob, create_home: false, generate_ssh_key: true}}",
        "{name: x, ansible.builtin.copy: {content: a, dest: /tmp/known-name}}",
        "{name: x, block: [{name: x, ansible.builtin.stat: {path: '{{ it }}/x'}, vars: {it: ~bob}}]}",
    ],
)
def test_such_a_task_is_found(text):
    assert list(offences(walk(HERE, [yaml.safe_load(text)], "root")))


def test_task_of_the_owner_is_none():
    task = {"name": "x", "become_user": "bob", "block": [{"name": "y", "ansible.builtin.stat": {"path": "~bob/x"}}]}
    assert not list(offences(walk(HERE, [task], "root")))
