"""Steps in containers: srun --container-image, on real nodes."""

import json

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.slurm.test_mpi import KINDS, PROGRAM

TWO = "--nodes=2 --ntasks-per-node=2 --mem-per-cpu=200"
ONE = "--nodes=1 --ntasks=1 --mem=200"


@pytest.fixture(scope="module")
def references(controller):
    """Image -> its name in the cluster's registry."""
    path = controller.run("cat /etc/isthmus/images.json")
    if path.rc != 0:
        pytest.skip("this site has no registry of images")
    return {name: image["reference"] for name, image in json.loads(path.stdout)["images"].items()}


@pytest.fixture(scope="module")
def image(references):
    """An image of Debian."""
    return references["debian"]


@pytest.fixture(scope="module")
def work(login, user):
    """A folder of the user's that all nodes see."""
    path = login.run_as(user, "mktemp -d ~/.isthmus-test-XXXXXX")
    yield path
    login.output(f"rm -rf {path}")


@pytest.fixture
def srun(login, user, image):
    """Run a command by srun in the image; it may fail."""

    def run(options, command, name=image):
        return login.try_as(user, f"srun --container-image={name} {options} {command}")

    return run


def printed(done):
    assert done.rc == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_tasks_see_the_image_and_cannot_change_it(srun):
    reported = printed(srun(ONE, "sh -c 'ls -d /.singularity.d; touch /new || echo kept'"))
    assert reported.splitlines() == ["/.singularity.d", "kept"]


def test_one_container_a_node_for_all_tasks(srun, two_computes):
    reported = printed(srun(TWO, "sh -c 'echo $SLURMD_NODENAME $(readlink /proc/self/ns/mnt)'")).split("\n")
    assert len(reported) == 4
    assert len(set(reported)) == 2


def test_user_is_the_same_and_root_only_of_name(srun, login, user):
    assert printed(srun(ONE, "id -u")) == login.run_as(user, "id -u")
    assert printed(srun(f"{ONE} --container-remap-root", "id -u")) == "0"


def test_what_is_written_ends_with_the_step(srun):
    assert printed(srun(f"{ONE} --container-writable", "sh -c 'touch /new && ls /new'")) == "/new"
    assert srun(f"{ONE} --container-writable", "ls /new").rc != 0


def test_folders_are_shown_where_the_user_says(srun, work, login, user):
    login.run_as(user, f"echo seen > {work}/file")
    mounts = f"--container-mounts={work}:/in:ro,{work}:/out --container-workdir=/in"
    assert printed(srun(f"{ONE} {mounts}", "sh -c 'cat file; touch /in/new || touch /out/new; pwd'")) == "seen\n/in"
    assert login.run_as(user, f"ls {work}/new") == f"{work}/new"


def test_home_is_shown_on_request_alone(srun, work):
    assert srun(ONE, f"ls {work}").rc != 0
    assert srun(f"{ONE} --container-mount-home", f"ls {work}").rc == 0


def test_variables_of_the_image_win_but_for_named_ones(login, user, image):
    step = f"PATH=/usr/bin:/bin:/none srun --container-image={image} {ONE}"
    show = "/bin/sh -c 'echo $PATH'"
    assert "/none" not in login.run_as(user, f"{step} {show}")
    assert login.run_as(user, f"{step} --container-env=PATH {show}") == "/usr/bin:/bin:/none"


def test_task_in_a_container_is_in_the_jobs_pod(srun, two_computes):
    found = "sh -c 'echo $SLURM_JOB_ID; readlink /proc/self/ns/net; cat /etc/resolv.conf'"
    plain, pod = (printed(srun(f"{ONE} {option}", found)).splitlines() for option in ("", "--pod-network"))
    assert plain[1] != pod[1]
    assert f"search {pod[0]}." in "\n".join(pod)


def test_exit_code_is_the_programs_and_nothing_stays(srun, two_computes, login, user):
    assert srun(f"{ONE} --nodelist={two_computes[0].name}", "sh -c 'exit 7'").rc == 7
    uid = login.run_as(user, "id -u")
    left = f"pgrep -u {uid} -f 'isthmus[_]hold|/.isthmus/hold|squashfuse' | wc -l"
    wait(lambda: two_computes[0].output(left), lambda count: count == "0")


def test_steps_of_one_job_have_images_of_their_own(login, user, image, references):
    step = f"srun {ONE} --overlap --container-image="
    count = "sh -c 'ls /usr/bin/mpirun* 2>/dev/null | wc -l'"
    both = f"{step}{image} {count}; {step}{references['mpi']} {count}; srun {ONE} --overlap ls -d /.singularity.d"
    done = login.try_as(user, f"salloc {ONE} sh -c {json.dumps(both)} 2>&1")
    counts = [line for line in done.stdout.splitlines() if line.isdigit()]
    assert counts[0] == "0"
    assert int(counts[1]) > 0
    assert "cannot access '/.singularity.d'" in done.stdout


def test_each_srun_of_a_batch_job_has_the_jobs_image(login, controller, user, image):
    script = "ls -d /.singularity.d || echo host; srun ls -d /.singularity.d"
    job = jobs.submit(login, user, f"{ONE} --container-image={image}", script)
    jobs.wait_for_job(controller, job, "COMPLETED")
    assert jobs.output(login, user, job).splitlines()[-2:] == ["host", "/.singularity.d"]


@pytest.mark.parametrize("network", ["", "--pod-network"])
def test_ranks_in_containers_meet(login, user, two_computes, references, work, network):
    login.run_as(user, f"cat > {work}/sum.c <<'END'\n{PROGRAM}\nEND")
    login.run_as(user, f"cd {work} && mpicc.openmpi -O2 -o sum sum.c")
    container = f"--container-image={references['mpi']} --container-mounts={work}"
    done = login.try_as(user, f"srun --mpi={KINDS['openmpi']} {TWO} {network} {container} {work}/sum")
    lines = [line.split(maxsplit=1)[1] for line in printed(done).splitlines() if "size=" in line]
    assert lines == ["size=4 sum=6"] * 4


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ("--container-image=ctl:5000/isthmus/none", "none"),
        ("--container-image='No Image'", "is no image; write e.g. debian:13"),
        ("--container-image=/none.sqsh", "there is no file /none.sqsh"),
        ("--container-image=debian:13 --container-mounts=tmp:/x", "not absolute paths"),
        ("--container-image=debian:13 --container-mounts=/none/x", "there is no /none/x here"),
        ("--container-mounts=/tmp", "--container-image is missing"),
        ("--container-image=debian:13 --container-writable --container-readonly", "exclude one another"),
    ],
)
def test_wrong_options_are_refused_before_slurm_is_asked(login, user, options, reported):
    done = login.try_as(user, f"srun --job-name=refused {options} true")
    assert done.rc == 1
    assert reported in done.stderr
    assert login.run_as(user, "squeue --me --noheader --name=refused") == ""


def test_file_that_is_no_image_ends_the_step_with_apptainers_words(login, user, work):
    login.run_as(user, f"echo none > {work}/none.sqsh")
    done = login.try_as(user, f"srun {ONE} --container-image={work}/none.sqsh true")
    assert done.rc == 1
    assert "cannot use its container on" in done.stderr


def test_answer_that_does_not_reach_the_node_starts_nothing_on_it(login, user, image):
    done = login.try_as(user, f"srun {ONE} --export=NONE --container-image={image} touch /tmp/isthmus-ran")
    assert done.rc == 1
    assert "leave --export out" in done.stderr
