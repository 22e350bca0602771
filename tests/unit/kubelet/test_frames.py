"""The kubelet's codec of the channel, on the bytes that both codecs are held to."""

import asyncio
import json
from pathlib import Path

import pytest

from isthmus.kubelet import frames

CASES = json.loads((Path(__file__).parents[2] / "support/channel_frames.json").read_text())


def decode(content):
    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        return await frames.read(reader)

    return asyncio.run(read())


@pytest.mark.parametrize("case", CASES["frames"] + CASES["decoded"], ids=lambda case: case["name"])
def test_frame_is_read(case):
    found = decode(bytes.fromhex(case["hex"]))
    if "message" in case:
        assert found == case["message"]
    else:
        told = case["data"]
        assert found == frames.Data(told["stream"], told["channel"], bytes.fromhex(told["hex"]))


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_other_bytes_are_refused(case):
    with pytest.raises((frames.FrameError, asyncio.IncompleteReadError)):
        decode(bytes.fromhex(case["hex"]))


@pytest.mark.parametrize("size", [0, 1, frames.MAX_BYTES, 3 * frames.MAX_BYTES])
def test_message_of_any_size_comes_back(size):
    message = {"type": "plan", "text": "x" * size}
    assert decode(frames.message(message)) == message


def test_message_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(frames, "MESSAGE_BYTES", 100)
    with pytest.raises(frames.FrameError, match="fewer configMaps"):
        frames.message({"type": "plan", "text": "x" * 100})


@pytest.mark.parametrize("body", [b"", b"x", b"x" * (frames.CHUNK_BYTES + 1)])
def test_data_comes_back_whole(body):
    parts = [decode(frame) for frame in frames.data(7, frames.Channel.STDOUT, body)]
    assert b"".join(part.body for part in parts) == body
    assert {(part.stream, part.channel) for part in parts} == {(7, 1)}
