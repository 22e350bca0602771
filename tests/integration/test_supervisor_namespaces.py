"""The namespaces of a pod, made and ended many times: several processes take part, in any order."""

ROUNDS = 200
SCRIPT = """
import os, sys, tempfile
from pathlib import Path
from isthmus.supervisor.runtime import namespaces

for number in range(int(sys.argv[1])):
    base = Path(tempfile.mkdtemp(dir="/scratch"))
    spaces = namespaces.hold(base)
    assert Path(f"/proc/{spaces.pid}/comm").read_text() == "pause\\n"
    assert spaces.many_ids
    spaces.end()
    os.waitpid(spaces.pid, 0)
    assert not base.exists()
print("done")
"""


def test_namespaces_are_made_and_ended_whatever_comes_first(host):
    assert host.run("python3", "-I", "-c", SCRIPT, str(ROUNDS), user="alice") == "done\n"
