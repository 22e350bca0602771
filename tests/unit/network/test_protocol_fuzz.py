"""10,000 random messages: each is a request or refused by name, and nothing else happens."""

import json
import random
from collections import Counter
from itertools import product

from isthmus.network.api import protocol
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError, accept, authorise, parse_request, refuse
from tests.unit.network.test_protocol import REQUESTS

MESSAGES = 10_000
VALID = [protocol.encode_request(request) for request in REQUESTS]
FIELDS = ("version", "op", "job", "uid", "user", "name", "nodes", "driver", "reservation", "timeout_s", "port", "x")
# As JSON text, so that there may be more in it than Python writes.
VALUES = (
    *("null", "true", "0", "1", "-1", "7.0", "1e999", "-1e-999", "NaN", "Infinity", "9" * 400, "9" * 6000, '""', "[]"),
    *('"x"', '"\\ud800"', '"\\u0000"', '"c[1-2]"', '"c[1-99999999]"', '"none"', '"private"', '"status"', '"../../etc"'),
    *("{}", '{"a":{"a":[[]]}}', "[" * 500 + "]" * 500, "[" * 5000, '"' + "x" * 3000 + '"', '"\xff"', "0x7", "01", "+1"),
)


def random_bytes(chance):
    return chance.randbytes(chance.choice([0, 1, 10, 300]))


def flipped(chance):
    """Return a valid line with some bytes replaced, removed, put in or repeated."""
    line = bytearray(chance.choice(VALID))
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(line) + 1)
        new = chance.choice([b"", chance.randbytes(1), chance.choice(b'{}[]",:0-e\\').to_bytes(1, "big"), line[:at]])
        line[at : at + chance.choice([0, 1, 1, 5])] = new
    return bytes(line)


def changed(chance):
    """Return a valid request with some fields of other values, gone, new, or there twice."""
    fields = [[json.dumps(name), json.dumps(value)] for name, value in json.loads(chance.choice(VALID)).items()]
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        kind = chance.choice(["value", "value", "value", "gone", "new"])
        if kind == "gone" and fields:
            fields.pop(chance.randrange(len(fields)))
        elif kind == "value" and fields:
            chance.choice(fields)[1] = chance.choice(VALUES)
        else:
            fields.append([json.dumps(chance.choice(FIELDS)), chance.choice(VALUES)])
    return ("{" + ",".join(f"{name}:{value}" for name, value in fields) + "}").encode("latin-1", "replace")


def deep(chance):
    opening, closing = chance.choice([("[", "]"), ('{"a":', "}"), ('[{"version":', "}]")])
    depth = chance.choice([10, 900, 1100, 5000])
    return (opening * depth + chance.choice(["", "1", closing * depth])).encode()


def answer(line, peer):
    """Do as the daemon does, for a request that it would take and one that it would not."""
    try:
        request = parse_request(line)
        # What was read can be said again: nothing of it was lost or made up.
        assert parse_request(protocol.encode_request(request)) == request
        authorise(request, peer, owner=1001)
    except RequestError as error:
        return refuse(error.code, str(error))
    return accept()


def test_random_messages_are_answered():
    chance = random.Random(5)  # noqa: S311 -- the same each time
    answers = Counter()
    makers = (random_bytes, deep, *[flipped] * 5, *[changed] * 9)
    for index in range(MESSAGES):
        line = makers[index % len(makers)](chance)
        reply = answer(line, chance.choice([0, 1001, 1002]))
        reported = json.loads(reply)
        assert reply.count(b"\n") == 1
        assert len(reply) < 1000
        answers[reported.get("error", {}).get("code", "ok")] += 1
    # Each kind of answer was met, so the messages are neither all wrong nor all right.
    wanted = {"malformed", "version", "unknown_op", "invalid", "forbidden", "ok"}
    assert set(answers) == wanted <= {*ErrorCode, "ok"}
    assert min(answers.values()) > 20, answers


def test_random_bytes_are_malformed():
    chance = random.Random(6)  # noqa: S311 -- the same each time
    for _, size in product(range(200), (0, 1, 7, 1000, protocol.LINE_MAX + 1)):
        assert json.loads(answer(chance.randbytes(size), 0))["error"]["code"] == "malformed"
