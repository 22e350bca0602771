"""One call of gRPC's health service, `grpc.health.v1.Health/Check`, over cleartext HTTP/2 (RFC 9113) framed by hand.

The request's headers are literals without indexing or Huffman code (RFC 7541, 6.2.2), which every server must read. Of
the answer only DATA frames matter: a status other than OK comes without a message, so no header need be decoded.
"""

from __future__ import annotations

import asyncio
import struct

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS, _ACK, _PADDED = 1, 4, 1, 8
_STATUS = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_LONGEST = 1 << 14


class GrpcError(Exception):
    """The service is not SERVING, or the answer is not gRPC."""


async def check(host: str, port: int, service: str) -> None:
    """Ask a health service.

    Raises:
        GrpcError: it does not answer SERVING.
        OSError: it cannot be reached.
    """
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_PREFACE + frame(_SETTINGS, 0, 0, b"") + _request(host, port, service))
        await writer.drain()
        message = await _answer(reader, writer)
    except asyncio.IncompleteReadError as error:
        raise GrpcError("the connection ended before the answer") from error
    finally:
        writer.close()
    status = serving_status(message)
    if status != 1:
        raise GrpcError(f"the service is {_STATUS.get(status, status)}")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return an HTTP/2 frame."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def header(name: str, value: str) -> bytes:
    """Return a header as a literal."""
    return b"\0" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    content = text.encode()
    # An integer of a 7-bit prefix (RFC 7541, 5.1); more than 254 bytes are nobody's name.
    head = bytes([len(content)]) if len(content) < 127 else bytes([127, len(content) - 127])
    return head + content


def _request(host: str, port: int, service: str) -> bytes:
    words = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": f"{host}:{port}",
        "content-type": "application/grpc",
        "user-agent": "kube-probe/isthmus",
        "te": "trailers",
    }
    name = service.encode()[:100]
    message = b"\x0a" + bytes([len(name)]) + name if name else b""
    body = b"\0" + struct.pack("!I", len(message)) + message
    headers = b"".join(header(*word) for word in words.items())
    return frame(_HEADERS, _END_HEADERS, 1, headers) + frame(_DATA, _END_STREAM, 1, body)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    body = b""
    while True:
        head = await reader.readexactly(9)
        length = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack("!BBI", head[3:])
        if length > _LONGEST:
            raise GrpcError("the answer is no HTTP/2")
        payload = await reader.readexactly(length)
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            writer.write(frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind in (_RST_STREAM, _GOAWAY):
            raise GrpcError("the service does not take the call")
        elif kind == _DATA and stream == 1:
            body += payload[1 : length - payload[0]] if flags & _PADDED else payload
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            return body


def serving_status(body: bytes) -> int:
    """Return the status in a HealthCheckResponse of an answer's body.

    Raises:
        GrpcError: there is none: the call failed.
    """
    if len(body) < 5 or body[0]:
        raise GrpcError("the service does not know health checks, or not of this name")
    message = body[5:]
    if not message:
        return 0
    if len(message) < 2 or message[0] != 0x08:
        raise GrpcError("the answer is no HealthCheckResponse")
    return message[1]
