"""What a running pod is sent again."""

import asyncio
from types import SimpleNamespace

from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods.background import Background
from tests.support.pods.objects import UID, pod, resolved

POD = pod(volumes=[{"name": "config", "configMap": {"name": "words"}}])


class Peer(Connection):
    """A supervisor, and what it got."""

    def __init__(self):
        self.uid, self.got = UID, []

    async def send(self, message):
        self.got.append(message)


def test_files_are_sent_when_they_change():
    """A refresh is twice a minute, and a pod may have megabytes of them."""
    peer, words = Peer(), iter(["old", "old", "new", "new"])

    async def resolve(whole, images):
        return resolved(config_maps={"words": {"data": {"word": next(words)}}})

    folder = SimpleNamespace(renew_credential=lambda authority: None)
    parts = SimpleNamespace(
        config=SimpleNamespace(resolve=resolve), store=SimpleNamespace(folder=lambda uid: folder), authority=None
    )
    link = SimpleNamespace(is_attached=True, has_plan=True, peer=peer)
    state = SimpleNamespace(number="7", has_ended=False, is_deleted=False, link=link, pod=POD)
    work = Background(parts, SimpleNamespace(uid=UID, kept=state), None)

    async def refreshed():
        for _ in range(4):
            await work.refresh()

    asyncio.run(refreshed())
    assert [message["type"] for message in peer.got] == ["update", "update"]
    first, second = (message["volumes"][0]["files"] for message in peer.got)
    assert first != second
