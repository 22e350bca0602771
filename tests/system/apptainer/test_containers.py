import pytest

from tests.support.clusters import jobs

KINDS = ("registry", "sif", "sandbox", "squashfs")


@pytest.fixture(scope="module")
def containers(login, user, references, work):
    """What a user can start: kind -> where it is."""
    image = f"docker://{references['busybox']}"
    login.run_as(user, f"apptainer --quiet build {work}/a.sif {image}")
    login.run_as(user, f"apptainer --quiet build --sandbox {work}/sandbox {image}")
    path = login.run_as(user, f"isthmus pull {image}")
    return {"registry": image, "sif": f"{work}/a.sif", "sandbox": f"{work}/sandbox", "squashfs": path}


@pytest.mark.parametrize("kind", KINDS)
def test_user_runs_a_container_in_a_job(login, user, containers, kind):
    ran = login.try_as(user, f"srun apptainer exec {containers[kind]} sh -c 'id -un; busybox | head -n 1'")
    assert ran.rc == 0, ran.stderr
    assert ran.stdout.startswith(f"{user}\nBusyBox ")
    # Without squashfuse it would be unpacked at each start, which takes seconds.
    assert "temporary sandbox" not in ran.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_user_is_root_inside_alone(login, user, containers, work, kind):
    inside = f"id -u; touch {work}/{kind}-of-root {work}/{kind}-of-5; chown 5:5 {work}/{kind}-of-5"
    assert login.run_as(user, f"srun apptainer --silent exec --fakeroot {containers[kind]} sh -c '{inside}'") == "0"
    owners = login.output(f"stat --format %u {work}/{kind}-of-root {work}/{kind}-of-5").split()
    first = int(login.output(f"grep ^{user}: /etc/subuid").split(":")[1])
    assert owners == [login.output(f"id -u {user}"), str(first + 5 - 1)]


def test_fakeroot_opens_nothing_of_the_host(login, user, containers):
    refused = login.try_as(
        user, f"apptainer --silent exec --fakeroot -B /etc {containers['squashfs']} cat /etc/shadow || exit 1"
    )
    assert refused.rc != 0
    assert "Permission denied" in refused.stderr


def test_batch_job_starts_a_container_on_two_nodes(login, controller, user, two_computes, containers):
    command = f"srun --ntasks-per-node=1 apptainer --silent exec {containers['squashfs']} hostname"
    job = jobs.submit(login, user, "--nodes=2", command)
    jobs.wait_for_job(controller, job, "COMPLETED")
    assert set(jobs.output(login, user, job).split()) == {node.name for node in two_computes}
    login.run_as(user, f"rm -f .isthmus-test-{job}.out")


def test_image_of_another_is_closed(login, user, other_user, containers):
    assert login.try_as(other_user, f"apptainer exec {containers['squashfs']} true || exit 1").rc == 1
