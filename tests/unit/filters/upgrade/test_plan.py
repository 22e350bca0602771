"""Plans: their order, their refusals, and that a cut anywhere ends in the same place."""

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.filters.upgrade.plan import Verb, is_done, plan
from isthmus.filters.upgrade.state import DAEMONS, Database, Host, Observed, Role, Wanted
from isthmus.model import skew

OLD, NEW = "24.11.5-4+deb13u1", "26.05.5-1"
WANTED = Wanted(slurm="26.05", etcd="3.7.3", kubernetes="1.37.2")
# What is wanted, and what hosts have then.
PACKAGES = {"24.11": OLD, "25.05": "25.05.4-1", "25.11.2": "25.11.2-3", "26.05": NEW}


def host(name, *roles, slurm=OLD, **rest):
    daemons = frozenset(daemon for role in roles for daemon in DAEMONS[role])
    given_ = {"newest": slurm, "current": daemons, "etcd": "", "kubernetes": "1.36.3"} | rest
    return Host(name, frozenset(roles), slurm, **given_)


def cluster(nodes=2, **of_controller):
    controller = {"database": Database.CURRENT, "etcd": "3.6.14"} | of_controller
    hosts = [host("ctl", Role.CONTROLLER, **controller)]
    hosts += [host(f"c{number}", Role.COMPUTE) for number in range(1, nodes + 1)]
    hosts.append(host("login", Role.LOGIN))
    return Observed({each.name: each for each in hosts}, {})


def changed(there, name, **fields):
    return Observed({**there.hosts, name: replace(there.hosts[name], **fields)}, there.absent)


def bring(there, step, name, deep):
    """Do a step on one host, or only its first half: packages that no daemon runs of."""
    now = there.hosts[name]
    if step.verb is Verb.ETCD:
        return changed(there, name, etcd=step.after)
    if step.verb is Verb.KUBERNETES:
        return changed(there, name, kubernetes=step.after)
    if step.verb in (Verb.WIDEN, Verb.NARROW):
        return changed(there, name, widened=step.verb is Verb.WIDEN)
    new = PACKAGES[step.after]
    if deep == "half":
        half = {"slurm": now.slurm, "newest": new} if name < "d" else {"slurm": new, "newest": new}
        database = Database.DUE if Role.CONTROLLER in now.roles else now.database
        return changed(there, name, current=frozenset(), drained=Role.COMPUTE in now.roles, database=database, **half)
    whole = {"slurm": new, "newest": new, "current": now.wants, "drained": False}
    database = Database.CURRENT if now.database is not Database.NONE else Database.NONE
    return changed(there, name, database=database, **whole)


def carry_out(there, made):
    for step in made.steps:
        for name in step.hosts:
            there = bring(there, step, name, "whole")
    return there


def verbs(made):
    return [step.verb for step in made.steps]


def test_steps_come_in_the_order_of_the_guide():
    made = plan(cluster(), WANTED)
    assert verbs(made) == list(Verb)
    by_verb = {step.verb: step for step in made.steps}
    assert by_verb[Verb.COMPUTE].hosts == ("c1", "c2")
    assert (by_verb[Verb.CONTROLLER].before, by_verb[Verb.CONTROLLER].after) == (OLD, "26.05")
    assert (by_verb[Verb.ETCD].hosts, by_verb[Verb.ETCD].after) == (("ctl",), "3.7.3")


def test_nothing_is_planned_after_the_plan():
    assert plan(carry_out(cluster(), plan(cluster(), WANTED)), WANTED).steps == ()


def test_nothing_is_planned_for_a_slurm_that_nobody_wants_to_move():
    assert plan(cluster(), Wanted()).steps == ()
    assert plan(cluster(), Wanted(slurm="26.05", manage=False)).steps == ()


ROLES = st.sampled_from([{Role.COMPUTE}, {Role.LOGIN}, {Role.COMPUTE, Role.LOGIN}])
# A controller that is more than that, and one whose etcd is elsewhere.
CONTROLLERS = st.sampled_from([{Role.CONTROLLER}, {Role.CONTROLLER, Role.LOGIN}, {Role.CONTROLLER, Role.COMPUTE}])
REQUESTS = st.builds(
    Wanted,
    slurm=st.sampled_from(["", *PACKAGES]),
    etcd=st.sampled_from(["", "3.6.14", "3.7.3"]),
    kubernetes=st.sampled_from(["", "1.36.3", "1.37.2"]),
    manage=st.booleans(),
)


@st.composite
def sites(draw):
    """Clusters of all shapes, with members of etcd that are ahead."""
    etcds = st.sampled_from(["", "3.6.14", "3.7.3"])
    hosts = [host("ctl", *draw(CONTROLLERS), database=Database.CURRENT, etcd="3.6.14")]
    names = [f"{draw(st.sampled_from('bcde'))}{number}" for number in range(draw(st.integers(0, 4)))]
    hosts += [host(name, *draw(ROLES), etcd=draw(etcds)) for name in names]
    return Observed({each.name: each for each in hosts}, {})


@st.composite
def cuts(draw, requests=st.just(WANTED)):  # noqa: B008 -- a strategy has no state
    """Runs that end at a random place, each after the other."""
    there, wanted = draw(sites()), draw(requests)
    whole = carry_out(there, plan(there, wanted))
    for _ in range(draw(st.integers(1, 4))):
        doing = [(step, name) for step in plan(there, wanted).steps for name in step.hosts]
        place = draw(st.integers(0, len(doing)))
        for step, name in doing[:place]:
            there = bring(there, step, name, "whole")
        if doing[place:]:
            there = bring(there, *doing[place], draw(st.sampled_from(["half", "whole"])))
    return there, whole, wanted


@given(cuts(REQUESTS))
def test_cut_anywhere_of_any_plan_ends_in_the_same_place(cut):
    there, whole, wanted = cut
    made = plan(there, wanted)
    assert made.refusals == ()
    assert carry_out(there, made) == whole
    assert plan(whole, wanted).steps == ()


@given(cuts())
def test_no_node_is_ever_newer_than_its_controller(cut):
    there, _, _ = cut
    controller = there.hosts["ctl"].newest
    assert all(skew.numbers(each.newest) <= skew.numbers(controller) for each in there.of(Role.COMPUTE))


@pytest.mark.parametrize(
    "fields",
    [
        {"current": frozenset()},
        {"slurm": OLD},
        {"drained": True, "slurm": NEW, "newest": NEW},
        {"current": frozenset({"slurmctld"})},
    ],
)
def test_half_done_node_is_due(fields):
    there = carry_out(cluster(), plan(cluster(), WANTED))
    assert verbs(plan(changed(there, "c1", **fields), WANTED)) == [Verb.WIDEN, Verb.COMPUTE, Verb.NARROW]


def test_timeouts_that_were_left_wide_are_narrowed():
    there = changed(carry_out(cluster(), plan(cluster(), WANTED)), "ctl", widened=True)
    assert verbs(plan(there, WANTED)) == [Verb.NARROW]


def test_database_that_was_not_converted_is_due():
    there = changed(carry_out(cluster(), plan(cluster(), WANTED)), "ctl", database=Database.DUE)
    assert Verb.CONTROLLER in verbs(plan(there, WANTED))


REFUSED = {
    "too_old_for_debian_13": (
        cluster(slurm="22.05.8-4"),
        Wanted(slurm="24.11"),
        r"ctl is of Slurm 22.05.8-4, from which 24.11 cannot be reached: .* 3 releases at once; go by way of 24.05 or",
    ),
    "too_old": (cluster(slurm="22.05.8-4"), WANTED, r"ctl is of Slurm 22.05.8-4, from which 26.05 cannot be reached"),
    "back": (cluster(slurm=NEW, newest=NEW), Wanted(slurm="24.11"), r"ctl is newer than slurm_version 24.11"),
    "pmix": (
        cluster(),
        replace(WANTED, pmix=True, pmix_problem="no address gives its source; put it there"),
        r"no plugin mpi/pmix.*no address gives its source; put it there; or set slurm_mpi_default: pmi2",
    ),
    "pmix_of_another": (
        cluster(),
        Wanted(slurm="25.11", pmix=True),
        r"no plugin mpi/pmix.*this Isthmus builds it for 26.05.5-1 alone; or set slurm_mpi_default: pmi2",
    ),
    "unknown": (cluster(), Wanted(slurm="31.05"), r"31.05 is none of the releases.*correct slurm_version"),
    "database": (cluster(database=Database.UNREADABLE), WANTED, r"database on ctl cannot be read; look at"),
    "etcd": (cluster(etcd="3.5.30"), WANTED, r"ctl has etcd 3.5.30, and this Isthmus brings 3.7.3"),
    "kubernetes": (cluster(kubernetes="1.35.4"), WANTED, r"ctl has Kubernetes 1.35.4, and this Isthmus brings 1.37.2"),
    "kubernetes_back": (cluster(kubernetes="1.38.1"), WANTED, r"ctl has Kubernetes 1.38.1"),
    "no_controller": (Observed({}, {"ctl": ""}), WANTED, r"the controller does not answer; start it"),
    "no_slurm": (cluster(slurm="", newest=""), WANTED, r"ctl is without Slurm; run site.yml"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_go_well_is_refused_with_its_remedy(case):
    there, wanted, message = REFUSED[case]
    made = plan(there, wanted)
    assert made.steps == ()
    assert len(made.refusals) == 1
    assert re.search(message, made.refusals[0])


def etcd(*versions):
    """A cluster whose members of etcd run these versions, "" for none; one named None does not answer."""
    hosts = {
        f"e{number}": host(f"e{number}", etcd=found) for number, found in enumerate(versions, 1) if found is not None
    }
    return Observed(hosts, {}, tuple(f"e{number}" for number in range(1, len(versions) + 1)))


@pytest.mark.parametrize(
    ("versions", "wanted", "due"),
    [
        (("3.7.3", "3.7.3", "3.7.3"), "3.6.14", ("e1", "e2", "e3")),
        (("3.6.14", "3.7.3", "3.7.3"), "3.6.14", ("e2", "e3")),
        (("3.6.14", "3.7.3", "3.6.14"), "3.7.3", ("e1", "e3")),
        (("3.6.16", "3.6.14", "3.6.14"), "3.6.14", ("e1",)),
        (("3.6.14", "3.6.14", "3.6.14"), "3.6.14", ()),
    ],
)
def test_etcd_goes_on_and_back_by_one_minor_wherever_it_was_cut(versions, wanted, due):
    made = plan(etcd(*versions), Wanted(etcd=wanted))
    assert made.refusals == ()
    assert [step.hosts for step in made.steps] == ([due] if due else [])


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [
        (("3.7.3", "3.7.3", "3.7.3"), "3.5.35"),
        (("3.7.3", "3.6.14", "3.6.14"), "3.5.35"),
        (("3.6.14", "3.5.35"), "3.7.3"),
    ],
)
def test_etcd_goes_neither_way_by_two(versions, wanted):
    made = plan(etcd(*versions), Wanted(etcd=wanted))
    assert made.steps == ()
    assert re.search(r"etcd goes one release at a time.*use the Isthmus of the release between", made.refusals[0])


@pytest.mark.parametrize("away", ["", None])
def test_member_that_is_away_is_no_reason_to_stop_another(away):
    made = plan(etcd("3.6.14", away, "3.6.14"), Wanted(etcd="3.7.3"))
    assert made.steps == ()
    assert re.search(r"etcd on e2 does not answer.*no further member may stop.*upgrade_skip", made.refusals[0])
    assert plan(etcd("3.7.3", away, "3.7.3"), Wanted(etcd="3.7.3")).refusals == ()
    assert plan(etcd("3.6.14", away, "3.6.14"), Wanted()).refusals == ()


@pytest.mark.parametrize("wanted", [replace(WANTED, pmix=True), replace(WANTED, pmix_problem="no source")])
def test_plugin_that_is_built_or_not_needed_is_in_nobodys_way(wanted):
    assert plan(cluster(), wanted) == plan(cluster(), WANTED)


def test_etcd_goes_back_by_one_minor():
    assert verbs(plan(cluster(etcd="3.7.3"), Wanted(etcd="3.6.14"))) == [Verb.ETCD]


def test_node_that_is_away_is_left_and_named():
    there = cluster()
    away = Observed({name: each for name, each in there.hosts.items() if name != "c2"}, {"c2": "24.11.5"})
    made = plan(away, WANTED)
    assert made.left == ("c2",)
    assert "c2" not in [name for step in made.steps for name in step.hosts]


def test_node_that_is_away_and_would_be_out_of_the_window_is_refused():
    there = cluster()
    made = plan(Observed(there.hosts, {"c9": "22.05.8"}), WANTED)
    assert "c9 is of Slurm 22.05.8" in made.refusals[0]


def test_drained_host_is_not_done_while_its_daemon_is_old():
    assert not is_done(host("c1", Role.COMPUTE, slurm=NEW, current=frozenset()), "26.05")


def test_five_hundred_nodes_are_planned_in_no_time():
    begun = time.process_time()
    plan(cluster(nodes=500), WANTED)
    assert time.process_time() - begun < 1
