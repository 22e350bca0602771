"""SPDY/3.1 as kubectl's library writes it: frames made by hand, cut anywhere."""

import struct
import zlib

import pytest

from isthmus.kubelet.api.spdy import DICTIONARY, MAX_FRAME_BYTES, Bytes, Leaving, Opened, Ping, Reset, Spdy, SpdyError


def control(kind, body, flags=0, version=3):
    return struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(body)) + body


class Client:
    def __init__(self):
        self.deflate = zlib.compressobj(zdict=DICTIONARY)

    def syn(self, stream, **headers):
        block = struct.pack(">I", len(headers))
        for word in (word for pair in headers.items() for word in pair):
            block += struct.pack(">I", len(word)) + word.encode()
        packed = self.deflate.compress(block) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack(">IIH", stream, 0, 0) + packed)


def test_dictionary_is_that_of_the_protocol():
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_frames_are_read_however_they_are_cut(step):
    client, spdy = Client(), Spdy()
    sent = client.syn(1, Streamtype="error", Port="80") + client.syn(3, streamtype="data", port="80")
    sent += struct.pack(">II", 3, 5) + b"hello" + struct.pack(">II", 3, 1 << 24)
    ping = control(6, struct.pack(">I", 1))
    sent += ping + control(4, b"\0" * 12) + control(3, struct.pack(">II", 1, 5)) + control(7, b"\0" * 8)
    found = [event for at in range(0, len(sent), step) for event in spdy.feed(sent[at : at + step])]
    assert found == [
        Opened(1, {"streamtype": "error", "port": "80"}),
        Opened(3, {"streamtype": "data", "port": "80"}),
        Bytes(3, b"hello", False),
        Bytes(3, b"", True),
        Ping(ping),
        Reset(1),
        Leaving(),
    ]


def test_replies_share_one_compression():
    spdy, inflate = Spdy(), zlib.decompressobj(zdict=DICTIONARY)
    for stream in (1, 3):
        frame = spdy.reply(stream)
        assert struct.unpack_from(">HHII", frame)[::3] == (0x8003, stream)
        assert inflate.decompress(frame[12:]) == b"\0\0\0\0"


@pytest.mark.parametrize(
    "sent",
    [
        control(1, struct.pack(">IIH", 1, 0, 0) + b"no zlib"),
        control(1, b"\0"),
        control(6, b"\0" * 4, version=2),
        struct.pack(">II", 1, MAX_FRAME_BYTES + 1),
        b"GET / HTTP/1.1\r\n",
    ],
    ids=["headers", "short", "version", "length", "http"],
)
def test_other_protocols_are_refused(sent):
    with pytest.raises(SpdyError):
        list(Spdy().feed(sent))
