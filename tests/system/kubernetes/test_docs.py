"""Blocks that pages for users promise to work, typed in their order by a user who has just read them."""

import shlex

import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.doc_blocks import fits, runnable
from tests.support.wait import wait

USERS = ROOT / "docs/users"
# Those of a layer that not every site has are typed by its own tests.
ELSEWHERE = {"migrating.md"}
PAGES = sorted(page.name for page in USERS.glob("*.md") if runnable(page.read_text()) and page.name not in ELSEWHERE)
BUSY_S = 60


@pytest.fixture(scope="module", autouse=True)
def addresses(settings):
    """Skip where Services have no addresses: pages show what users of a site with them see."""
    if settings["driver"] != "private" or settings["headless"]:
        pytest.skip("pages show a site whose Services have addresses")


@pytest.fixture
def typed(mine, images):
    """Type a block as the user, with this site's registry; gives the exit status and all that was printed."""
    registry = images["busybox"].partition("/isthmus/")[0]
    folder = mine.login.run_as(mine.user, "mktemp -d").strip()
    start = f"export KUBECONFIG=$(isthmus kubeconfig --path); cd {folder}; set -e"

    def once(script):
        text = f"{start}\n{script.replace('ctl:5000', registry)}"
        done = mine.login.try_as(mine.user, f"bash -c {shlex.quote(text)} 2>&1")
        return done.rc, done.stdout

    yield once
    mine.login.run_as(mine.user, f"rm -r {folder}")


@pytest.mark.parametrize("name", PAGES)
def test_page_does_what_it_says(typed, name):
    for block in runnable((USERS / name).read_text()):

        def as_promised(seen, printed=block.printed):
            return seen[0] == 0 and fits(printed, seen[1])

        timeout_s = BUSY_S if block.until else 0
        wait(lambda block=block: typed(block.script), as_promised, timeout_s=timeout_s, interval_s=1)
