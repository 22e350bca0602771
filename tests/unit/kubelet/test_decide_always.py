"""What holds of every pod, whatever happens and in whatever order: a world of one pod, played by hypothesis."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.kubelet.pods.decision import actions
from isthmus.kubelet.pods.decision.decide import decide
from isthmus.kubelet.pods.decision.state import FINAL, Held, Link, PodState, Prepared, Stop
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_job import JobState, SlurmJob
from tests.support.pods.objects import SETTINGS, container, pod, resolved
from tests.support.pods.statuses import START, at, ended, report, running

POD = pod(container("app"), restartPolicy="Never")
PREPARED = Prepared(translate.plan(POD, resolved()), (), {})
# What moves a pod on comes more often than what holds it.
EVENTS = [
    *("prepared", "job runs", "connects", "reports", "works") * 3,
    *("held", "never", "refused", "silent without job", "dies at sbatch", "job ends", "job fails"),
    *("foreigner", "hangs up", "reports end", "kubelet dies", "second", "minute"),
]
STORIES = st.lists(st.sampled_from(EVENTS), max_size=40)
QUIET = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


class World:
    """One pod: what the API, Slurm and the folder have, and the kubelet's state, which dies with it."""

    def __init__(self):
        self.pod, self.is_gone, self.is_removed = POD, False, False
        self.accepted, self.kept_job = False, None
        self.jobs, self.clock_s, self.sbatch = {}, 0.0, "works"
        self.plans, self.cancelled = [], set()
        self.begin()

    def begin(self):
        """Start the kubelet: it knows what lasts, and nothing else."""
        self.state = PodState(self.pod, SETTINGS, at(0), 0.0, is_gone=self.is_gone)
        self.work = frozenset()

    def note(self, **changes):
        self.state = replace(self.state, **changes)

    def observed(self):
        number = self.state.number
        job = self.jobs.get(number) if self.state.is_watched else None
        others = tuple(one for one, known in self.jobs.items() if one != number and not known.state.ended)
        times = {"now": at(self.clock_s), "now_s": self.clock_s}
        return replace(
            self.state, pod=self.pod, is_gone=self.is_gone, job=job, others=others if number else (), **times
        )

    def look(self):
        """Let the kubelet look once; return whether it did something."""
        if self.is_removed:
            return False
        state = self.observed()
        found = decide(state)
        assert decide(state) == found
        self.work = found.work
        for action in found.actions:
            self.act(action)
            if self.is_removed:
                break
        return bool(found.actions)

    def act(self, action):
        match action:
            case actions.Adopt():
                living = [one for one, known in self.jobs.items() if not known.state.ended] or [*self.jobs]
                found = self.kept_job or (living[0] if living and self.accepted else None)
                self.kept_job = found
                self.note(is_adopted=True, number=found)
            case actions.Retry():
                self.note(held=None)
            case actions.Submit():
                self.submit()
            case actions.Watch():
                self.note(is_watched=True)
            case actions.Cancel(number):
                self.cancelled.add(number)
                if self.state.stop:
                    self.note(stop=replace(self.state.stop, cancel_at_s=self.clock_s + 15, cancelled_s=self.clock_s))
            case actions.Publish(shown):
                old = self.pod["status"].get("phase")
                assert old not in FINAL or shown["phase"] == old
                self.pod = {**self.pod, "status": {**shown}}
                self.note(published=shown)
            case actions.Finish():
                assert self.state.number in self.jobs
                self.note(is_finished=True)
            case actions.Remove():
                self.remove()
            case _:
                self.talk(action)

    def submit(self):
        assert not any(not one.state.ended for one in self.jobs.values()), "a second job of the pod"
        assert not self.jobs, "the pod had a job already"
        self.accepted = True
        if self.sbatch in ("refused", "silent without job"):
            self.note(held=Held(self.clock_s + 10, {"phase": "Pending", "conditions": []}), prepared=None)
            return
        self.jobs["12"] = SlurmJob("12", JobState.PENDING)
        if self.sbatch == "dies at sbatch":
            self.begin()
            return
        self.kept_job = "12"
        self.note(number="12")

    def talk(self, action):
        link = self.state.link
        match action:
            case actions.Reject(_):
                self.note(link=None)
            case actions.Attach(_):
                self.note(link=replace(link, is_attached=True))
            case actions.SendPlan(_, _):
                self.plans.append(link.job)
                self.note(link=replace(link, has_plan=True), prepared=None)
            case actions.BeginStop():
                self.note(stop=Stop(self.clock_s + 5))
            case actions.SendStop(_, left_s, whole_s):
                self.note(stop=Stop(self.clock_s + left_s + 15, (link.peer, whole_s)))
            case actions.RefuseContainer(name, _):
                self.note(refused=self.state.refused | {name})

    def remove(self):
        state = self.observed()
        assert state.is_deleted
        assert all(one.state.ended for one in self.jobs.values()), "files of a job that lives"
        self.is_removed = True

    def happen(self, event):
        name = event.replace(" ", "_")
        getattr(self, f"when_{name}", lambda: setattr(self, "sbatch", event))()

    def when_prepared(self):
        if any(isinstance(one, actions.Prepare) for one in self.work):
            self.note(prepared=PREPARED)
        if any(isinstance(one, actions.Greet) for one in self.work):
            self.note(link=replace(self.state.link, is_greeted=True))

    def when_held(self):
        if actions.Prepare() in self.work:
            self.note(held=Held(self.clock_s + 1, {"phase": "Pending", "conditions": []}))

    def when_never(self):
        if actions.Prepare() in self.work:
            self.note(problems=("it cannot be",))

    def change(self, state):
        for number, known in self.jobs.items():
            if not known.state.ended:
                self.jobs[number] = replace(known, state=state, nodes="c1", started=START)

    def when_job_runs(self):
        self.change(JobState.RUNNING)

    def when_job_ends(self):
        self.change(JobState.COMPLETED)

    def when_job_fails(self):
        self.change(JobState.NODE_FAIL)

    def when_connects(self):
        if any(one.state == JobState.RUNNING for one in self.jobs.values()):
            self.note(link=Link(object(), "12", "c1", has_plan="12" in self.plans))

    def when_foreigner(self):
        self.note(link=Link(object(), "11", "c1"))

    def when_hangs_up(self):
        self.note(link=None)

    def when_reports(self):
        if self.state.link and self.state.link.is_attached:
            self.note(report=report(app=running(image_name="app")))

    def when_reports_end(self):
        if self.state.link and self.state.link.is_attached:
            self.note(report=report("ended", app=ended(3)))

    def when_kubelet_dies(self):
        self.begin()

    def when_deleted(self):
        when = at(self.clock_s + 30).isoformat()
        self.pod = {**self.pod, "metadata": {**POD["metadata"], "deletionTimestamp": when}}

    def when_gone(self):
        self.is_gone = True

    def when_second(self):
        self.clock_s += 1

    def when_minute(self):
        self.clock_s += 60

    def slurm_obeys(self):
        for number in self.cancelled:
            if number in self.jobs and not self.jobs[number].state.ended:
                self.jobs[number] = SlurmJob(number, JobState.CANCELLED)


@QUIET
@given(STORIES, st.sampled_from(["deleted", "gone"]), STORIES, st.booleans())
def test_pod_has_one_job_and_ends_with_it(before, end, after, is_linked):
    world = World()
    for event in [*before, end, *after]:
        world.happen(event)
        world.look()
    assert set(world.plans) <= {"12"}
    for _ in range(200):
        if is_linked:
            world.happen("connects")
        world.look()
        world.slurm_obeys()
        world.clock_s += 1
    assert world.is_removed
    assert all(one.state.ended for one in world.jobs.values())


@QUIET
@given(STORIES, st.booleans())
def test_what_was_done_is_not_done_again(story, is_deleted):
    """Once nothing more happens, the kubelet soon has nothing more to do, and writes nothing."""
    world = World()
    for event in [*story, *(["deleted"] if is_deleted else [])]:
        world.happen(event)
        world.look()
    for _ in range(12):
        world.look()
        world.slurm_obeys()
    assert world.is_removed or decide(world.observed()).actions == ()
