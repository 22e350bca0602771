"""What is to be done about nodes that come and go: tables of what Slurm says and what the cloud has."""

import pytest

from isthmus.cloud.power.decide import Repairs, Start, repairs, start
from isthmus.model.cloud import Found, Kind

GIVEN_UP = "isthmus: cloud: it did not join within 600 s"


def server(status="ACTIVE", **settings):
    return Found(Kind.SERVER, "1", "hpc-b1", "mark", status, settings)


@pytest.mark.parametrize(
    ("there", "starting", "how"),
    [
        (None, False, Start.CREATE),
        # A token without a server: the run that made it was killed.
        (None, True, Start.CREATE),
        (server(), True, Start.KEEP),
        (server("BUILD"), True, Start.KEEP),
        (server("ERROR"), True, Start.REPLACE),
        # Of an older start, or one that is being deleted: it cannot join any more.
        (server(), False, Start.REPLACE),
        (server("SHUTOFF"), False, Start.REPLACE),
    ],
)
def test_start(there, starting, how):
    servers = {"b1": there} if there else {}
    assert start(["b1"], servers, {"b1"} if starting else set()) == {"b1": how}


@pytest.mark.parametrize(
    ("flags", "reason", "there", "wanted"),
    [
        ("IDLE+CLOUD", "", server(), Repairs()),
        ("ALLOCATED+CLOUD", "", server("SHUTOFF"), Repairs()),
        ("IDLE+CLOUD+POWERED_DOWN", "", None, Repairs()),
        ("ALLOCATED+CLOUD+POWERING_UP", "", server(), Repairs()),
        ("IDLE+CLOUD+POWERING_DOWN", "", server(), Repairs()),
        ("DOWN+CLOUD+POWERED_DOWN", GIVEN_UP, None, Repairs()),
        # A start or an end that was cut off.
        ("ALLOCATED+CLOUD+POWERING_UP", "", None, Repairs(start=["b1"])),
        ("IDLE+CLOUD+POWERED_DOWN", "", server(), Repairs(stop={"b1": "Slurm has powered it down"})),
        ("DOWN+CLOUD+POWERED_DOWN", GIVEN_UP, server(), Repairs(stop={"b1": "it was given up"})),
        ("DOWN+CLOUD+POWERING_UP", GIVEN_UP, server(), Repairs(stop={"b1": "it was given up"})),
        ("DOWN+CLOUD+POWERING_UP", GIVEN_UP, None, Repairs()),
        # Slurm is about to start it; the server of before is replaced then.
        ("IDLE+CLOUD+POWERED_DOWN+POWER_UP", "", server(), Repairs()),
        # Slurm keeps the reason of a node that an admin has resumed.
        ("IDLE+CLOUD", GIVEN_UP, server(), Repairs()),
        # An admin's own.
        ("DOWN+CLOUD", "disk", server(), Repairs()),
        ("ALLOCATED+CLOUD", "", None, Repairs(down={"b1": "its server is gone"})),
        ("IDLE+CLOUD+DRAIN", "disk", None, Repairs(down={"b1": "its server is gone"})),
        (
            "ALLOCATED+CLOUD+POWERING_UP",
            "",
            server("ERROR", fault="No valid host was found"),
            Repairs(down={"b1": "No valid host was found"}, stop={"b1": "it failed"}),
        ),
    ],
)
def test_repairs(flags, reason, there, wanted):
    assert repairs({"b1": (frozenset(flags.split("+")), reason)}, {"b1": there} if there else {}) == wanted
