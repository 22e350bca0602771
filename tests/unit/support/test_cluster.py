import re

from tests.support.clusters.cluster import connect

SHOW = '#!/bin/sh\necho "$@"\n'
HOST = {"address": "192.0.2.1", "port": 22, "user": "root", "key": "", "options": "-o Tag=x", "become": False}


def test_commands_on_a_host_share_a_connection_and_hosts_do_not(tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text(SHOW)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    hosts = [connect(HOST | {"address": address}) for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2")]
    paths = [re.findall(r"-o ControlPath=(\S+)", host.run("true").stdout) for host in hosts]
    assert [len(found) for found in paths] == [1, 1, 1]
    assert paths[0] == paths[1] != paths[2]
