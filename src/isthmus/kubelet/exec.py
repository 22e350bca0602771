"""exec and attach: a WebSocket of Kubernetes' remote command protocol, v4 or v5, joined with a stream of the pod.

Each message is u8 channel | bytes. In v5 a message 255 | channel closes that channel. The end is a v1.Status on
channel 3 (k8s.io/client-go, tools/remotecommand).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import WSMsgType, web

from isthmus.kubelet.channel import Stream, StreamEnded
from isthmus.kubelet.frames import Channel

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_ERROR = 3
_CLOSE = 255
_FROM_CLIENT = (Channel.STDIN, Channel.RESIZE)


async def join(socket: web.WebSocketResponse, stream: Stream) -> None:
    """Carry bytes both ways until the program ends or the client goes."""
    given = asyncio.create_task(_give(socket, stream))
    try:
        async for item in stream:
            if item.body:
                await socket.send_bytes(bytes([item.channel]) + item.body)
        end = stream.end or StreamEnded(None, "no end")
        await socket.send_bytes(bytes([_ERROR]) + json.dumps(status(end)).encode())
        await socket.close()
    except ConnectionError:
        await stream.cancel()
    finally:
        given.cancel()


async def _give(socket: web.WebSocketResponse, stream: Stream) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, body = message.data[0], message.data[1:]
        if channel == _CLOSE and body:
            await stream.send(body[0], b"")
        elif channel in _FROM_CLIENT and body:
            # Without bytes it only opens the channel; to the pod it would close it.
            await stream.send(channel, body)
    await stream.cancel()


def status(end: StreamEnded) -> dict[str, Any]:
    """Return the v1.Status that tells how a program ended."""
    if end.error:
        return {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": end.error, "code": 500}
    if not end.exit_code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {end.exit_code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(end.exit_code)}]},
    }
