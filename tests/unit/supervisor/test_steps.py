"""What the supervisor sends to a container's step."""

import asyncio
import os
import socket

from isthmus.supervisor.runtime.steps import Step


def received(peer):
    """Read to the end, slowly; return the bytes, and how many descriptors came."""
    content, descriptors, _, _ = socket.recv_fds(peer, 1000, 10)
    for each in descriptors:
        os.close(each)
    while part := peer.recv(1000):
        content += part
    return content, len(descriptors)


async def sent(message):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        step = Step(None, None)
        step._socket = ours
        reading = asyncio.create_task(asyncio.to_thread(received, theirs))
        await step._send(message, [ours.fileno(), theirs.fileno()])
        ours.shutdown(socket.SHUT_WR)
        return await reading


def test_large_message_is_sent_whole():
    """Variables of a pod may be more than a socket takes at once."""
    message = bytes(range(256)) * 1000
    assert asyncio.run(sent(message)) == (message, 2)
