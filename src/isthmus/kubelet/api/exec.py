"""exec and attach: connects a WebSocket of Kubernetes' remote command protocols with a stream of the pod.

Each message is u8 channel | bytes; in the protocols with base64, one digit and text. In v5 a message 255 | channel
closes that channel. The end is a v1.Status on channel 3; in the first version it is its message alone, and nothing
after success (k8s.io/client-go, tools/remotecommand; k8s.io/kubelet, pkg/cri/streaming/remotecommand).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from typing import Any

from isthmus.kubelet.channel import Stream, StreamEnded
from isthmus.podproto.frames import Channel
from isthmus.support.aio import WSMessage, WSMsgType
from isthmus.support.aio.serving import web

_FIRST = ("channel.k8s.io", "base64.channel.k8s.io")
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", *_FIRST)

_ERROR = 3
_CLOSE = 255
_FROM_CLIENT = (Channel.STDIN, Channel.RESIZE)


async def join(socket: web.WebSocketResponse, stream: Stream) -> None:
    """Copy bytes both ways until the program ends or the client disconnects."""
    given = asyncio.create_task(_give(socket, stream))
    try:
        async for item in stream:
            if item.body:
                await _send(socket, item.channel, item.body)
        if last := last_words(socket.ws_protocol or "", stream.end or StreamEnded(None, "no end")):
            await _send(socket, _ERROR, last)
        await socket.close()
    except ConnectionError:
        await stream.cancel()
    finally:
        given.cancel()


async def refuse(socket: web.WebSocketResponse, why: str) -> None:
    """Close a WebSocket with an error that the client shows."""
    await _send(socket, _ERROR, last_words(socket.ws_protocol or "", StreamEnded(None, why)))
    await socket.close()


async def _give(socket: web.WebSocketResponse, stream: Stream) -> None:
    async for message in socket:
        data = _received(socket, message)
        if not data:
            continue
        channel, body = data[0], data[1:]
        if channel == _CLOSE and body:
            await stream.send(body[0], b"")
        elif channel in _FROM_CLIENT and body:
            # An empty message only opens the channel; for the pod it would close it.
            await stream.send(channel, body)
    await stream.cancel()


def _is_text(socket: web.WebSocketResponse) -> bool:
    return "base64" in (socket.ws_protocol or "")


async def _send(socket: web.WebSocketResponse, channel: int, body: bytes) -> None:
    if _is_text(socket):
        await socket.send_str(f"{channel}{base64.b64encode(body).decode()}")
    else:
        await socket.send_bytes(bytes([channel]) + body)


def _received(socket: web.WebSocketResponse, message: WSMessage) -> bytes:
    """Return channel and bytes; None for an invalid message."""
    if not _is_text(socket):
        return bytes(message.data) if message.type is WSMsgType.BINARY else b""
    text = message.data if isinstance(message.data, bytes) else str(message.data).encode()
    try:
        return bytes([int(text[:1])]) + base64.b64decode(text[1:], validate=True)
    except (ValueError, binascii.Error):
        return b""


def last_words(protocol: str, end: StreamEnded) -> bytes:
    """Return the final message of channel 3."""
    outcome = status(end)
    if protocol in _FIRST:
        return str(outcome.get("message", "")).encode()
    return json.dumps(outcome).encode()


def status(end: StreamEnded) -> dict[str, Any]:
    """Return the v1.Status of a program's end."""
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
