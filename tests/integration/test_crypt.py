import shutil
import subprocess

import pytest

from isthmus.filters.base import base_password_hash

pytestmark = pytest.mark.skipif(not shutil.which("perl"), reason="this machine has no perl")


def crypt(clear, hashed):
    """What the C library, and so a login, makes of a password and a stored hash."""
    done = subprocess.run(
        ["perl", "-e", "print crypt($ARGV[0], $ARGV[1])", clear, hashed], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_hash_lets_its_password_in():
    hashed = base_password_hash("correct horse", "saltsaltsalt")
    assert crypt("correct horse", hashed) == hashed


def test_hash_keeps_another_password_out():
    hashed = base_password_hash("correct horse", "saltsaltsalt")
    assert crypt("battery staple", hashed) != hashed
