import json

import pytest

from isthmus.supervisor import frames
from tests.support.cluster import ROOT

VECTORS = json.loads((ROOT / "tests/support/channel_frames.json").read_text())
FRAMES = {vector["name"]: vector for vector in VECTORS["frames"]}
DECODED = {vector["name"]: vector for vector in VECTORS["decoded"]}
REFUSED = {vector["name"]: bytes.fromhex(vector["hex"]) for vector in VECTORS["refused"]}


def told(vector):
    if "message" in vector:
        return vector["message"]
    return frames.Data(vector["data"]["stream"], vector["data"]["channel"], bytes.fromhex(vector["data"]["hex"]))


def encoded(frame):
    if isinstance(frame, frames.Data):
        return frames.data(frame.stream, frame.channel, frame.content)
    return frames.message(frame)


@pytest.mark.parametrize("name", FRAMES)
def test_frame_is_these_bytes_and_back(name):
    vector = FRAMES[name]
    assert encoded(told(vector)).hex() == vector["hex"]
    assert frames.decode(bytes.fromhex(vector["hex"])) == [told(vector)]


@pytest.mark.parametrize("name", DECODED)
def test_message_in_parts_is_put_together(name):
    assert frames.decode(bytes.fromhex(DECODED[name]["hex"])) == [DECODED[name]["message"]]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_frame_is_refused(name):
    with pytest.raises(frames.FrameError):
        frames.decode(REFUSED[name])


def test_limits_are_the_agreed_ones():
    assert (VECTORS["limit_bytes"], VECTORS["message_bytes"]) == (frames.LIMIT_BYTES, frames.MESSAGE_BYTES)


def test_frames_that_arrive_in_pieces():
    wire = b"".join(bytes.fromhex(vector["hex"]) for vector in VECTORS["frames"])
    decoder = frames.Decoder()
    found = [frame for byte in wire for frame in decoder.feed(bytes([byte]))]
    assert found == [told(vector) for vector in VECTORS["frames"]]


def test_much_data_becomes_several_frames_within_the_limit():
    content = bytes(range(256)) * 5000
    wire = frames.data(1, frames.STDOUT, content)
    found = frames.decode(wire)
    assert len(found) == 2
    assert b"".join(frame.content for frame in found) == content


def test_large_message_becomes_several_frames():
    message = {"type": "plan", "text": "ü" * frames.LIMIT_BYTES}
    assert frames.decode(frames.message(message)) == [message]


def test_message_beyond_the_limit_is_refused():
    with pytest.raises(frames.FrameError):
        frames.message({"type": "report", "text": "x" * frames.MESSAGE_BYTES})
