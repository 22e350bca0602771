"""What the ranks of an MPI container have of their pod, on real Apptainer."""

from tests.support.supervised import container, mount, plan, volume


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
