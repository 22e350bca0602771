"""`isthmus network`, with a socket that answers as the daemon does."""

import json
import threading

import pytest

from isthmus.cli.commands import network
from isthmus.cli.main import main
from isthmus.model.network import Transport
from isthmus.network.api import client
from isthmus.network.api.messages import (
    ErrorCode,
    Expose,
    LeaseTake,
    List,
    Metrics,
    Reserve,
    Status,
    Trace,
    TraceProtocol,
    Withdraw,
)
from isthmus.network.api.protocol import accept, parse_request, refuse
from isthmus.network.api.server import Server

JOB = {"id": 7, "user": "alice", "nodes": ["c1", "c2"], "addresses": ["10.64.0.2", "10.64.0.4"]}
PORT = {"user": "alice", "name": "web", "outside": "198.51.100.10:443", "protocol": "tcp", "state": "open"}
REPLIES = {
    List(): accept({"jobs": [JOB], "reserved": [], "exposed": [PORT]}),
    Expose("web", 443): accept({"outside": PORT["outside"], "protocol": "tcp", "new": True}),
    Expose("web", 53, Transport.UDP): refuse(ErrorCode.FULL, "no rule lets anybody outside reach web.alice:53 by udp"),
    Withdraw("web", 443): accept({"withdrawn": True}),
    Status(): accept({"node": "c1", "errors": {}}),
    Metrics(): accept({"text": "# TYPE a counter\na 1.0\n"}),
    LeaseTake(): accept({"leg": "il4096", "address": "10.64.0.9"}),
    Reserve("web"): accept({"address": "10.64.0.5"}),
    Trace("12", "192.0.2.7", TraceProtocol.UDP, 53): accept(
        {"verdict": "refused", "steps": [{"node": "c1", "check": "from_pods", "by": "network_egress"}]}
    ),
    LeaseTake(uid=1002): refuse(ErrorCode.FORBIDDEN, "a user asks for himself only; leave out uid"),
}


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    serves = Server(tmp_path / "socket", lambda line, uid: REPLIES[parse_request(line)])
    thread = threading.Thread(target=serves.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(network, "ask", lambda request: client.ask(request, tmp_path / "socket"))
    yield
    serves.shutdown()
    serves.server_close()
    thread.join()


def test_list_prints_jobs_and_addresses(daemon, capsys):
    assert main(["network", "list"]) == 0
    shown = capsys.readouterr().out
    assert "10.64.0.2 10.64.0.4" in shown
    assert "no reserved" in shown


def test_json_is_what_the_daemon_said(daemon, capsys):
    assert main(["network", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "jobs": [JOB], "reserved": [], "exposed": [PORT]}


@pytest.mark.parametrize(
    ("words", "shown"), [(["join"], "il4096"), (["reserve", "web"], "10.64.0.5"), (["status"], "c1")]
)
def test_verb_prints_the_reply(daemon, capsys, words, shown):
    assert main(["network", *words]) == 0
    assert shown in capsys.readouterr().out


def test_metrics_are_printed_as_they_are(daemon, capsys):
    assert main(["network", "metrics"]) == 0
    assert capsys.readouterr().out == "# TYPE a counter\na 1.0\n"


def test_trace_prints_each_step(daemon, capsys):
    assert main(["network", "trace", "12", "192.0.2.7", "--port", "53", "--proto", "udp"]) == 0
    shown = capsys.readouterr().out
    assert "refused" in shown
    assert "network_egress" in shown


def test_refusal_is_reported(daemon, capsys):
    assert main(["network", "join", "--uid", "1002"]) == 1
    assert "a user asks for himself only" in capsys.readouterr().err


def test_daemon_that_is_away_is_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(network, "ask", lambda request: client.ask(request, tmp_path / "nothing"))
    assert main(["network", "status"]) == 1
    assert "an administrator checks isthmus-networkd" in capsys.readouterr().err


def test_port_is_opened_listed_and_closed(daemon, capsys):
    for words, shown in (
        (["expose", "web", "443"], "198.51.100.10:443"),
        (["list"], "198.51.100.10:443"),
        (["withdraw", "web", "443"], "withdrawn"),
    ):
        assert main(["network", *words]) == 0
        assert shown in capsys.readouterr().out


def test_port_that_no_rule_lets_anybody_reach_is_refused(daemon, capsys):
    assert main(["network", "expose", "web", "53", "--proto", "udp"]) != 0
    assert "no rule lets anybody outside reach web.alice:53" in capsys.readouterr().err
