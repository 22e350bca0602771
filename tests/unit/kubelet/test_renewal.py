"""When the kubelet restarts: its program or its settings have changed."""

import asyncio

import pytest

from isthmus.kubelet import renewal

PERIOD_S = 0.01


async def until(change, *looks, limit_s=30):
    """Return whether `changed` returns after a change, having waited before it."""
    seen = []
    *others, last = looks
    task = asyncio.create_task(renewal.changed(*others, lambda: seen.append(last()) or seen[-1], period_s=PERIOD_S))
    async with asyncio.timeout(limit_s):
        while len(seen) < 3:
            await asyncio.sleep(PERIOD_S)
    assert not task.done()
    change()
    done, _ = await asyncio.wait({task}, timeout=limit_s)
    task.cancel()
    return bool(done)


def replace(path, text):
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def test_replaced_file_is_a_change(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text("same")
    assert asyncio.run(until(lambda: replace(path, "same"), lambda: None, lambda: renewal.of(path)))


def test_file_that_comes_is_a_change(tmp_path):
    path = tmp_path / "settings.json"
    assert asyncio.run(until(lambda: path.write_text("new"), lambda: renewal.of(path)))


@pytest.mark.parametrize("returns", [False, True])
def test_file_that_is_away_is_one_being_replaced(tmp_path, returns):
    path = tmp_path / "RECORD"
    path.write_text("old")
    away = tmp_path / "away"

    def change():
        path.rename(away)
        if returns:
            away.rename(path)

    assert not asyncio.run(until(change, lambda: renewal.of(path), limit_s=50 * PERIOD_S))


def test_installation_has_a_mark():
    path, inode, _ = renewal.installed()
    assert path.endswith(".dist-info/RECORD")
    assert inode
