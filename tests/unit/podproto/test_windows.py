"""Flow control of streams: nothing is lost, nothing is more than a window, nobody waits for ever."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.podproto.frames import CHUNK_BYTES, FrameError
from isthmus.podproto.windows import FRAME_BYTES, Incoming, Outgoing, cost

SMALLEST = 2 * (CHUNK_BYTES + FRAME_BYTES)


@given(st.lists(st.integers(0, CHUNK_BYTES), max_size=60), st.integers(SMALLEST, 4 * SMALLEST), st.integers(1, 5))
def test_all_comes_within_the_window(sizes, window, pause):
    """A reader who is slower than the sender gets every chunk, and at no moment more waits than the window has."""

    async def run():
        outgoing, incoming, queue = Outgoing(window), Incoming(window), asyncio.Queue()

        async def send():
            for size in sizes:
                assert await outgoing.take(bytes(size))
                incoming.received(bytes(size))
                queue.put_nowait(bytes(size))

        async def take():
            for number in range(len(sizes)):
                body = await queue.get()
                waiting = sum(cost(one) for one in queue._queue)
                assert waiting <= window
                for _ in range(pause if number % 3 else 0):
                    await asyncio.sleep(0)
                if count := incoming.taken(body):
                    outgoing.add(count)

        async with asyncio.timeout(20):
            await asyncio.gather(send(), take())

    asyncio.run(run())


def test_more_than_was_granted_is_refused():
    incoming = Incoming(SMALLEST)
    incoming.received(bytes(CHUNK_BYTES))
    incoming.received(bytes(CHUNK_BYTES))
    with pytest.raises(FrameError, match="window"):
        incoming.received(b"")


def test_window_that_could_stop_its_sender_is_refused():
    with pytest.raises(ValueError, match="window"):
        Incoming(SMALLEST - 1)


def test_end_of_a_stream_lets_its_senders_go():
    async def run():
        outgoing = Outgoing()
        waiting = [asyncio.create_task(outgoing.take(b"x")) for _ in range(3)]
        await asyncio.sleep(0)
        assert outgoing.is_waiting
        outgoing.close()
        async with asyncio.timeout(5):
            assert await asyncio.gather(*waiting) == [False] * 3
        assert not outgoing.is_waiting

    asyncio.run(run())
