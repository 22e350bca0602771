"""Services in a request: read as agreed, or refused."""

from ipaddress import IPv4Network

import pytest

from isthmus.model.services import AFFINITY_MAX_S, ENDPOINTS_MAX, ENDPOINTS_OF_ONE_MAX, SERVICES_MAX, rows
from isthmus.network.api.fields import BoundError, FieldError
from isthmus.network.api.messages import ErrorCode, JobGet, JobServices
from isthmus.network.api.protocol import LINE_MAX, RequestError, encode_request, parse_request
from isthmus.network.services.rows import outside, read
from tests.support.pods.services import answering, place

TABLE = {place(): answering("10.64.0.3:8080", "192.0.2.1:1"), place(port=81): answering(affinity_s=AFFINITY_MAX_S)}


def row(address="10.96.0.9", protocol="tcp", port=80, affinity_s=0, endpoints=("10.64.0.3:8080",)):
    return [address, protocol, port, affinity_s, [*endpoints] if isinstance(endpoints, tuple) else endpoints]


def test_rows_are_read():
    assert read(rows(TABLE)) == TABLE
    assert read([]) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, 7, "x", {}, [], row()[:4], [*row(), 1]),
        *(row(address=wrong) for wrong in (None, 7, ["10.96.0.9"])),
        *(row(port=wrong) for wrong in (None, "80", 80.0, True)),
        *(row(affinity_s=wrong) for wrong in (None, "1", 1.0, True)),
        *(row(endpoints=wrong) for wrong in (None, "10.64.0.3:1", {})),
        row(protocol=7),
    ],
)
def test_row_of_another_form_is_refused(wrong):
    with pytest.raises(FieldError) as caught:
        read([wrong])
    assert caught.type is FieldError


@pytest.mark.parametrize(
    "wrong",
    [
        *(row(address=wrong) for wrong in ("", "x", "10.96.0.0/16", "::1", "10.96.0.9 ", "010.96.0.9", "10.96.0.9;")),
        *(row(protocol=wrong) for wrong in ("TCP", "icmp", "", "tcp . 80 : accept")),
        *(row(port=wrong) for wrong in (0, -1, 65536)),
        *(row(affinity_s=wrong) for wrong in (-1, AFFINITY_MAX_S + 1)),
        *(row(endpoints=(wrong,)) for wrong in ("10.64.0.3", "10.64.0.3:", ":80", "10.64.0.3:0", "10.64.0.3:65536")),
        *(row(endpoints=(wrong,)) for wrong in ("10.64.0.3:+1", "10.64.0.3: 1", "10.64.0.3:1_0", "10.64.0.3:\u0661")),
        *(row(endpoints=(wrong,)) for wrong in ("::1:80", "10.64.0.3:1 }", "\n:1", "10.64.0.3:" + "9" * 5000)),
        *(row(endpoints=(wrong,)) for wrong in (None, 7, ["10.64.0.3:1"])),
        *(row(endpoints=(f"{wrong}:1",)) for wrong in ("127.0.0.1", "0.0.0.1", "169.254.169.254", "224.0.0.1")),
        *(row(endpoints=(f"{wrong}:1",)) for wrong in ("255.255.255.255", "240.0.0.1")),
        row(endpoints=("10.64.0.3:1", "10.64.0.3:1")),
        row(endpoints=tuple(f"10.64.0.3:{port}" for port in range(1, ENDPOINTS_OF_ONE_MAX + 2))),
    ],
)
def test_value_that_cannot_be_is_refused(wrong):
    with pytest.raises(BoundError):
        read([wrong])


def test_place_twice_is_refused():
    with pytest.raises(BoundError, match=r"has 10\.96\.0\.9 tcp 80 twice"):
        read([row(), row(endpoints=())])


def largest():
    """Return a table of all that is allowed, in its longest form."""
    each = ENDPOINTS_MAX // SERVICES_MAX
    ports = [f"210.210.210.210:{60000 + number}" for number in range(each)]
    return {
        place(f"210.210.{100 + number // 100}.{100 + number % 100}", 60000): answering(
            *ports, affinity_s=AFFINITY_MAX_S
        )
        for number in range(SERVICES_MAX)
    }


def test_largest_table_is_one_request():
    request = JobServices(2**32 - 3, largest())
    line = encode_request(request)
    assert len(line) <= LINE_MAX
    assert parse_request(line) == request


def test_one_service_more_is_refused():
    with pytest.raises(BoundError, match=f"services are more than {SERVICES_MAX}"):
        read([*rows(largest()), row(endpoints=())])


def test_one_endpoint_more_is_refused():
    table = rows(largest())
    table[0][-1].append("10.64.0.3:8080")
    with pytest.raises(BoundError, match=f"more than {ENDPOINTS_MAX} endpoints"):
        read(table)


def test_places_outside_the_range_are_reported():
    found = outside(TABLE, [IPv4Network("10.96.0.0/29"), IPv4Network("10.97.0.0/16")])
    assert found == [*TABLE]
    assert outside(TABLE, [IPv4Network("10.97.0.0/16"), IPv4Network("10.96.0.0/16")]) == []


def test_right_to_bring_services_is_judged_before_their_rows():
    def permit(job):
        raise RequestError(ErrorCode.FORBIDDEN, f"{job}")

    with pytest.raises(RequestError) as caught:
        parse_request(encode_request(JobServices(7, TABLE)).replace(b"10.64.0.3", b"nonsense"), permit)
    assert (caught.value.code, str(caught.value)) == (ErrorCode.FORBIDDEN, "7")
    assert parse_request(encode_request(JobGet(7)), permit) == JobGet(7)
