"""The host's resolv.conf: ours first, everything else as it was."""

from ipaddress import IPv4Address

import pytest

from isthmus.network.dns.hostresolver import OURS, HostResolver, follow, upstreams, wanted

GIVEN = "# by DHCP\nsearch example.org\nnameserver 192.0.2.53\nnameserver fd00::53\noptions ndots:1\n"


@pytest.mark.parametrize(
    ("text", "then"),
    [
        (GIVEN, GIVEN.replace("nameserver 192.0.2.53", f"{OURS}\nnameserver 192.0.2.53")),
        ("", f"{OURS}\n"),
        ("search a", f"search a\n{OURS}\n"),
        ("nameserver 192.0.2.53\nnameserver 127.0.0.153\n", f"{OURS}\nnameserver 192.0.2.53\n"),
    ],
)
def test_ours_comes_first_and_once(text, then):
    assert wanted(text, HostResolver.RESOLV_CONF) == then
    assert wanted(then, HostResolver.RESOLV_CONF) == then


@pytest.mark.parametrize("how", [HostResolver.NONE, HostResolver.RESOLVED])
def test_ours_goes_where_it_is_not_wanted(how):
    assert wanted(wanted(GIVEN, HostResolver.RESOLV_CONF), how) == GIVEN


def test_upstreams_are_the_others():
    text = wanted(GIVEN, HostResolver.RESOLV_CONF) + "nameserver\nnameserver x\n nameserver 192.0.2.54\n"
    assert list(map(str, upstreams(text))) == ["192.0.2.53", "fd00::53", "192.0.2.54"]


def test_file_is_written_where_it_differs_alone(tmp_path):
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.53")
    assert follow(HostResolver.NONE, path) == (IPv4Address("192.0.2.53"),)
    assert path.read_text() == "nameserver 192.0.2.53"
    follow(HostResolver.RESOLV_CONF, path)
    assert path.read_text() == f"{OURS}\nnameserver 192.0.2.53\n"
    before = path.stat().st_ino
    follow(HostResolver.RESOLV_CONF, path)
    assert path.stat().st_ino == before


def test_file_that_another_program_keeps_stays_its_link(tmp_path):
    (tmp_path / "theirs").write_text("nameserver 192.0.2.53\n")
    link = tmp_path / "resolv.conf"
    link.symlink_to("theirs")
    follow(HostResolver.RESOLV_CONF, link)
    assert link.is_symlink()
    assert (tmp_path / "theirs").read_text().startswith(OURS)


def test_host_without_the_file_has_no_upstreams(tmp_path):
    assert follow(HostResolver.RESOLV_CONF, tmp_path / "resolv.conf") == ()
