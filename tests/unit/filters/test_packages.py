import subprocess

import pytest

from isthmus.filters.packages import lacking, question
from tests.support.fakes.dpkg import row

ROWS = row("bash") + row("lib") + row("asked") + row("gone", status="config-files")
# With the line ends of a terminal.
REPORTED = f"""\
{ROWS}Package: lib\r
Architecture: amd64\r
Auto-Installed: 1\r
\r
Package: asked\r
Architecture: amd64\r
Auto-Installed: 0\r
"""


@pytest.mark.parametrize(
    ("name", "expected"), [("bash", []), ("asked", []), ("lib", ["lib"]), ("gone", ["gone"]), ("never", ["never"])]
)
def test_package_is_lacking_unless_it_is_installed_for_its_own_sake(name, expected):
    assert lacking([name], REPORTED) == expected


def test_question_is_one_that_a_host_answers(tmp_path):
    (tmp_path / "dpkg-query").write_text('#!/bin/sh\nprintf "%s\\n" "$4"; exit 1\n')
    (tmp_path / "cat").write_text('#!/bin/sh\necho "$1"\n')
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    command = f"PATH={tmp_path}:$PATH; {question(['bash', 'x y'])}"
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout
    assert answer == "x y\n/var/lib/apt/extended_states\n"
