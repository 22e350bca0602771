"""What the tests of Apptainer share: the registry's images, and a folder of the user's that all nodes see."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="session")
def references(controller):
    """Image -> its name in the cluster's registry."""
    known = json.loads(controller.output("cat /etc/isthmus/images.json"))["images"]
    return {name: image["reference"] for name, image in known.items()}


@pytest.fixture(scope="module")
def work(login, user):
    """A folder of the user's, gone at the end with what containers made in it."""
    path = login.run_as(user, "mktemp -d ~/.isthmus-test-XXXXXX")
    yield path
    login.output(f"rm -rf {path}")
