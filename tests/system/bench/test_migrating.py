"""The tutorial docs/users/migrating.md, typed by a user in the page's order."""

import shlex

from tests.support.clusters.cluster import ROOT
from tests.support.doc_blocks import fits, runnable

PAGE = ROOT / "docs/users/migrating.md"


def test_pipeline_goes_from_a_batch_script_to_an_mpijob(measuring, bench_images, two_computes):
    login, user = measuring.login, measuring.user
    registry = bench_images["fe-pipeline"].partition("/workloads/")[0]
    folder = login.run_as(user, "mktemp -d ~/isthmus-migrating.XXXX").strip()
    blocks = runnable(PAGE.read_text())
    assert len(blocks) == 3
    try:
        for block in blocks:
            script = f"export KUBECONFIG=$(isthmus kubeconfig --path); cd {folder}; set -e\n{block.script}"
            done = login.try_as(user, f"bash -c {shlex.quote(script.replace('ctl:5000', registry))} 2>&1")
            assert done.rc == 0, done.stdout
            assert fits(block.printed, done.stdout), done.stdout
    finally:
        login.run_as(user, f"rm -r {folder}")
