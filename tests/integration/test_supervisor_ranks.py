"""What the ranks of an MPI container have of their pod, on real Apptainer."""

from tests.support.pods.plans import container, mount, plan, volume


def said(pod, script, *volumes, **rest):
    """Return what a rank writes."""
    pod.run(plan(container("main", script, mpi=True, mpi_flags=["--mpi=pmix"], **rest), volumes=[*volumes])).ended()
    lines = (pod.folder / "logs/main/0.log").read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines if " stdout " in line]


def test_ranks_see_volumes_that_are_images(pod):
    image = volume("image", "image", path=str(pod.host.image))
    mounts = [mount("image", "/image"), mount("image", "/part", sub_path="etc")]
    script = "head -n 1 /image/etc/passwd; ls /part; touch /image/x 2>&1"
    told = ["root:x:0:0:root:/root:/bin/sh", "group", "hosts", "passwd", "resolv.conf"]
    assert said(pod, script, image, mounts=mounts) == [*told, "touch: /image/x: Read-only file system"]


LOOK = "ls ~/mine 2>&1; touch /x 2>&1; pwd; grep -E 'CapPrm|CapBnd|NoNew' /proc/self/status; ls -d /scratch 2>&1"


def test_ranks_see_what_the_pod_mounts(pod):
    pod.host.run("touch", "/home/alice/mine", user="alice")
    home, *rest = said(pod, LOOK)
    assert home.endswith("No such file or directory")
    assert rest == [
        "touch: /x: Read-only file system",
        "/",
        *("CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"),
        "ls: /scratch: No such file or directory",
    ]


def test_ranks_have_the_home_where_the_pod_says_so(pod):
    pod.host.run("touch", "/home/alice/mine", user="alice")
    assert said(pod, "ls ~/mine; ls -d /scratch 2>&1", mpi_home=True) == [
        "/home/alice/mine",
        "ls: /scratch: No such file or directory",
    ]


def test_ranks_of_a_node_meet_in_shared_memory_and_in_the_folder_of_pmix(pod):
    folder = "/tmp/spmix_appdir_1000_77."
    pod.host.run("mkdir", "-p", folder, user="alice")
    for place in (folder, "/dev/shm"):
        pod.host.run("touch", f"{place}/isthmus-test", user="alice")
    seen = [f"{folder}/isthmus-test", "/dev/shm/isthmus-test"]
    assert said(pod, f"for f in {' '.join(seen)}; do rm $f && echo $f; done") == seen
    pod.host.run("rmdir", folder)


def test_ranks_get_no_part_of_a_folder_that_others_may_change(pod):
    (pod.folder / "place/part").mkdir(parents=True)
    place = volume("place", "host", path=str(pod.folder / "place"))
    main = container("main", "true", mpi=True, mounts=[mount("place", "/v", sub_path="part")])
    told = pod.run(plan(main, volumes=[place])).ended()["containers"]["main"]
    assert told["reason"] == "StartError"
    assert told["message"].startswith("subPath part of volume place is not offered with several tasks; ")


def test_ranks_have_a_place_for_what_is_temporary(pod):
    assert said(pod, "touch /tmp/x && ls /tmp/x; ls -A /var/tmp") == ["/tmp/x"]
