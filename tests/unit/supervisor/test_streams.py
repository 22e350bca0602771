"""Descriptors of `kubectl exec`, with real pipes and a program that only ends."""

import asyncio
import os

from isthmus.podproto.frames import Channel as Of
from isthmus.podproto.frames import Data
from isthmus.supervisor.containers.streams import Streams
from isthmus.supervisor.runtime.processes import Process, Program
from tests.support.fakes import homes


class Running(Process):
    """No process at all."""

    def kill(self, number):
        assert self.status.done()


class Pod:
    """One container; what it runs ends when the test says so."""

    name = "main"

    def __init__(self):
        self.ended = asyncio.get_running_loop().create_future()
        self.pipes = None

    def runner(self, name):
        return self

    def program(self, argv, *, terminal):
        return Program(argv, terminal=terminal)

    async def run_in(self, program, pipes):
        self.pipes = pipes
        return Running(0, self.ended)


class Channel:
    """Takes what is sent."""

    async def send(self, frame):
        """Take it."""

    async def end(self, number, code, error):
        self.reported = number, code, error


async def exec_whose_input_ends():
    pod, channel = Pod(), Channel()
    streams = Streams(channel, pod, homes.call)
    streams.open({"type": "exec", "stream": 1, "container": "main", "argv": ["cat"], "tty": False, "stdin": True})
    while pod.pipes is None:
        await asyncio.sleep(0)
    await streams.data(Data(1, Of.STDIN, b""))
    number = pod.pipes.ours[0]
    while number in map(int, os.listdir("/proc/self/fd")):
        await asyncio.sleep(0)
    # The next file to be opened may get the number that is free now.
    with open(os.devnull) as stranger:
        os.dup2(stranger.fileno(), number)
    pod.ended.set_result(0)
    await streams.flushed(10)
    assert channel.reported == (1, 0, None)
    os.close(number)


def test_input_that_has_ended_is_closed_once():
    asyncio.run(exec_whose_input_ends())
