import pytest

from tests.unit.spank.conftest import LIMIT_S
from tests.unit.spank.fake_daemon import ok, refusal

JOB = {"SLURM_JOB_USER": "alice", "SLURM_JOB_NODELIST": "c[1-4000]", "SLURM_JOB_PARTITION": "main"}
READY = ok(netns="/run/netns/isthmus-7", leg="il4096", address="10.0.0.2")
# The words, the option, and the driver that comes of them; None: nothing is asked.
PRECEDENCE = [
    ("", None, None),
    ("default=none", "none", None),
    ("default=private", "none", None),
    ("default=private", None, "private"),
    ("default=none", "", "private"),
    ("default=flannel", "", "private"),
    ("default=none", "(null)", "private"),
    ("default=none partition=main:flannel", None, "flannel"),
    ("default=private partition=main:none", None, None),
    ("default=private partition=mai:none partition=main2:none", None, "private"),
    ("partition=main:flannel user=alice:private", None, "private"),
    ("user=alice:none partition=main:private", None, None),
    ("user=alic:flannel user=alice2:flannel partition=alice:flannel user=main:flannel", None, None),
    ("user=alice:private partition=main:private", "flannel", "flannel"),
    ("user=alice:private partition=main:private", "none", None),
]


def given(option):
    return JOB if option is None else JOB | {"HOST_OPTION": option}


@pytest.mark.parametrize(("words", "option", "driver"), PRECEDENCE)
def test_driver_is_the_options_then_the_users_then_the_partitions(plugin, daemon, words, option, driver):
    fake = daemon(**({"job_prepare": READY} if driver else {}))
    assert plugin.run("prolog", *words.split(), **given(option)).logged == ""
    assert [request["driver"] for request in fake.requests] == ([driver] if driver else [])
    assert fake.calls == len(fake.requests)


def test_request_reports_all_that_slurm_reports(plugin, daemon):
    fake = daemon(job_prepare=READY)
    plugin.run("prolog", HOST_OPTION="", HOST_JOB="4227858431", HOST_UID="4294967294", **JOB)
    reported = {"job": 4227858431, "uid": 4294967294, "user": "alice", "nodes": "c[1-4000]", "name": ""}
    times = {"timeout_s": LIMIT_S - 1, "answer_s": 0.005}
    assert fake.requests == [{"version": 1, "op": "job_prepare", "driver": "private", **times, **reported}]


def test_network_that_is_being_made_is_left_to_the_steps(plugin, daemon):
    daemon(job_prepare=ok(state="preparing"))
    assert plugin.run("prolog", HOST_OPTION="", **JOB).logged == ""


def test_request_reports_the_nodes_by_slurms_older_name_too(plugin, daemon):
    fake = daemon(job_prepare=READY)
    plugin.run("prolog", HOST_OPTION="", SLURM_JOB_USER="alice", SLURM_NODELIST="c[1-2]")
    assert fake.requests[0]["nodes"] == "c[1-2]"


def test_request_reports_name_and_reservation_where_there_are_some(plugin, daemon):
    fake = daemon(job_prepare=READY)
    name = 'a "b"\\/\n'
    plugin.run("prolog", HOST_OPTION="", SLURM_JOB_NAME=name, SPANK_ISTHMUS_RESERVATION="api", **JOB)
    assert (fake.requests[0]["name"], fake.requests[0]["reservation"]) == (name, "api")
    # Another control plane may have it, which has to end in order first.
    assert fake.requests[0]["timeout_s"] == 107


@pytest.mark.parametrize(
    ("words", "option", "note"),
    [
        ("", None, None),
        ("default=private", None, "private"),
        ("", "flannel", "flannel"),
        ("default=private", "none", "none"),
        ("default=private partition=main:none", None, "none"),
    ],
)
def test_driver_is_noted_for_the_steps_where_it_was_decided(plugin, daemon, words, option, note):
    daemon(**({"job_prepare": READY} if note not in {None, "none"} else {}))
    plugin.run("prolog", *words.split(), **given(option))
    assert plugin.record("7.driver") == note
    assert plugin.record("7.error") is None


def test_refusal_is_noted_for_the_user_and_fails_no_node(plugin, daemon):
    daemon(job_prepare=refusal("the pod range is full;\nask\x1b[31m for more"))
    result = plugin.run("prolog", HOST_OPTION="", **JOB)
    assert result.reported == ["rc=0"]
    assert plugin.record("7.error") == "the pod range is full; ask [31m for more"
    assert result.errors == ["isthmus: job 7 has no pod network here: the pod range is full; ask [31m for more"]


def test_dead_daemon_is_noted_and_fails_no_node(plugin):
    assert plugin.run("prolog", HOST_OPTION="", **JOB).reported == ["rc=0"]
    assert "cannot be reached (No such file or directory)" in (plugin.record("7.error") or "")


def test_unknown_network_is_noted_without_a_call(plugin, daemon):
    fake = daemon()
    plugin.run("prolog", HOST_OPTION="bridge", **JOB)
    assert plugin.record("7.error") == "there is no network bridge; choose private, flannel, routed, cni or none"
    assert (plugin.record("7.driver"), fake.calls) == ("private", 0)


def test_too_long_description_is_noted_without_a_call(plugin, daemon):
    fake = daemon()
    plugin.run("prolog", HOST_OPTION="", SLURM_JOB_NODELIST=",".join(f"n{index}" for index in range(12000)))
    assert "over 64 KiB" in (plugin.record("7.error") or "")
    assert fake.calls == 0


def test_requeued_job_starts_afresh(plugin, daemon):
    plugin.record("7.error", "of the first run")
    daemon(job_prepare=READY)
    plugin.run("prolog", HOST_OPTION="", **JOB)
    assert plugin.record("7.error") is None


def test_unwritable_record_is_logged_and_fails_no_node(plugin, daemon):
    (plugin.folder / "spank").write_text("a file where the folder should be")
    daemon(job_prepare=READY)
    result = plugin.run("prolog", HOST_OPTION="", **JOB)
    assert result.reported == ["rc=0"]
    assert "7.driver cannot be written: Not a directory" in result.errors[0]


def test_prolog_without_a_job_does_nothing(plugin, daemon):
    fake = daemon()
    result = plugin.run("prolog", HOST_REFUSES="1")
    assert (result.reported, fake.calls) == (["rc=0"], 0)
    assert result.errors == ["isthmus: Slurm does not say which job this prolog is for"]
