"""The codec of the channel, on bytes that are agreed."""

import asyncio
import json
from pathlib import Path

import pytest

from isthmus.podproto import frames

CASES = json.loads((Path(__file__).parents[2] / "support/channel_frames.json").read_text())


def decode(content):
    return decoded(content)[0]


def decoded(content):
    """Read all there is."""

    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        found = [await frames.read(reader)]
        while not reader.at_eof():
            found.append(await frames.read(reader))
        return found

    return asyncio.run(read())


def reported(case):
    if "message" in case:
        return case["message"]
    return frames.Data(case["data"]["stream"], case["data"]["channel"], bytes.fromhex(case["data"]["hex"]))


@pytest.mark.parametrize("case", CASES["frames"] + CASES["decoded"], ids=lambda case: case["name"])
def test_frame_is_read(case):
    assert decode(bytes.fromhex(case["hex"])) == reported(case)


@pytest.mark.parametrize("case", CASES["frames"], ids=lambda case: case["name"])
def test_frame_is_these_bytes(case):
    frame = reported(case)
    if isinstance(frame, frames.Data):
        made = frames.data(frame.stream, frame.channel, frame.body)
    else:
        made = frames.message(frame)
    assert made.hex() == case["hex"]


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_other_bytes_are_refused(case):
    with pytest.raises((frames.FrameError, asyncio.IncompleteReadError)):
        decode(bytes.fromhex(case["hex"]))


def test_limits_are_the_agreed_ones():
    assert (CASES["limit_bytes"], CASES["message_bytes"]) == (frames.MAX_BYTES, frames.MESSAGE_BYTES)


def test_frames_come_one_after_another():
    wire = b"".join(bytes.fromhex(case["hex"]) for case in CASES["frames"])
    assert decoded(wire) == [reported(case) for case in CASES["frames"]]


@pytest.mark.parametrize("size", [0, 1, frames.MAX_BYTES, 3 * frames.MAX_BYTES])
def test_message_of_any_size_comes_back(size):
    message = {"type": "plan", "text": "ü" * size}
    assert decode(frames.message(message)) == message


def test_message_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(frames, "MESSAGE_BYTES", 100)
    with pytest.raises(frames.FrameError, match="fewer configMaps"):
        frames.message({"type": "plan", "text": "x" * 100})


def test_bytes_of_a_stream_within_a_message_are_refused():
    wire = frames.message({"type": "plan", "text": "x" * frames.MAX_BYTES})
    first = frames.HEAD_BYTES + frames.length(wire[: frames.HEAD_BYTES])
    with pytest.raises(frames.FrameError):
        decode(wire[:first] + frames.data(1, frames.Channel.STDOUT, b"x") + wire[first:])


@pytest.mark.parametrize("body", [b"", b"x", b"x" * (frames.CHUNK_BYTES + 1)])
def test_data_comes_back_whole(body):
    parts = [decode(frames.data(7, frames.Channel.STDOUT, chunk)) for chunk in frames.chunks(body)]
    assert b"".join(part.body for part in parts) == body
    assert {(part.stream, part.channel) for part in parts} == {(7, 1)}
