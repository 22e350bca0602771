"""Volumes of all kinds in real containers."""

import base64

import pytest

from tests.support.pods.plans import container, mount, plan, volume
from tests.support.wait import wait


def file(path, text, mode=0o644):
    return {"path": path, "mode": mode, "data": base64.b64encode(text.encode()).decode()}


def said(kubelet, name, script):
    return kubelet.exec(name, "sh", "-c", script).finish()[1].decode()


def test_files_have_their_modes_and_stay_off_the_disk(pod):
    config = volume("config", "files", files=[file("key", "hidden text", 0o400), file("sub/deep", "d")])
    kubelet = pod.run(plan(container("main", "sleep 1000", mounts=[mount("config", "/etc/app")]), volumes=[config]))
    kubelet.until("main", ready=True)
    assert said(kubelet, "main", "cat /etc/app/key /etc/app/sub/deep; stat -Lc %a /etc/app/key") == "hidden textd400\n"
    assert "Read-only" in said(kubelet, "main", "echo x 2>&1 >/etc/app/key")
    assert not pod.host.run("grep", "-rl", "hidden text", "/scratch", pod.folder, user="root", check=False)


def test_files_are_switched_all_at_once(pod):
    before = volume("config", "files", files=[file("one", "1"), file("gone", "x")])
    kubelet = pod.run(plan(container("main", "sleep 1000", mounts=[mount("config", "/c")]), volumes=[before]))
    kubelet.until("main", ready=True)
    assert said(kubelet, "main", "ls /c; readlink /c/one") == "gone\none\n..data/one\n"
    after = volume("config", "files", files=[file("one", "2"), file("new", "n")])
    kubelet.send({"type": "update", "volumes": [after]})
    look = "ls /c; cat /c/one; ls -A /c | wc -l"
    wait(lambda: said(kubelet, "main", look), lambda seen: seen == "new\none\n24\n")


def test_memory_has_its_size_and_is_shared(pod):
    kinds = [volume("fast", "memory", size_bytes=1 << 20)]
    one = container("one", "sleep 1000", mounts=[mount("fast", "/fast")])
    two = container("two", "sleep 1000", mounts=[mount("fast", "/also", read_only=True)])
    kubelet = pod.run(plan(one, two, volumes=kinds))
    for name in ("one", "two"):
        kubelet.until(name, ready=True)
    assert "No space left" in said(kubelet, "one", "echo x >/fast/x; dd if=/dev/zero of=/fast/y bs=1M count=2 2>&1")
    assert said(kubelet, "two", "cat /also/x; touch /also/z 2>&1") == "x\ntouch: /also/z: Read-only file system\n"


def test_group_of_a_volume_may_write(pod):
    user = {"uid": 1000, "gid": 1000, "groups": [2000]}
    main = container("main", "touch /data/x; stat -c %u:%g:%a /data; stat -c %u:%g /data/x", user=user)
    main["mounts"] = [mount("data", "/data")]
    pod.run(plan(main, volumes=[volume("data", "dir", gid=2000)])).ended()
    assert [line.split()[3] for line in (pod.folder / "logs/main/0.log").read_text().splitlines()] == [
        "0:2000:2777",
        "1000:2000",
    ]


def test_group_of_a_secret_reads_it(pod):
    user = {"uid": 1000, "gid": 1000, "groups": [2000]}
    look = "cat /s/sub/key; stat -Lc '%n %u:%g %a' /s /s/key /s/sub /s/sub/key /s/open"
    main = container("main", look, user=user, mounts=[mount("s", "/s")])
    files = [file("key", "k", 0o400), file("sub/key", "deep", 0o400), file("open", "o", 0o644)]
    pod.run(plan(main, volumes=[volume("s", "files", gid=2000, files=files)])).ended()
    lines = [line.split(" ", 3)[3] for line in (pod.folder / "logs/main/0.log").read_text().splitlines()]
    assert lines == [
        "deep/s 0:2000 2755",
        "/s/key 0:2000 440",
        "/s/sub 0:2000 2755",
        "/s/sub/key 0:2000 440",
        "/s/open 0:2000 644",
    ]


def test_group_of_a_claim_may_write(pod):
    """A folder of the user's own, with a file of his and one that a container made before."""
    folder = pod.folder / "claim"
    folder.mkdir(mode=0o700)
    (folder / "old").write_text("old")
    pod.host.run("chown", "-R", "alice:", folder, user="root")
    user = {"uid": 1000, "gid": 1000, "groups": [2000]}
    main = container("main", "echo more >>/data/old; touch /data/x; cd /data; stat -c %u:%g:%a . old x", user=user)
    main["mounts"] = [mount("claim", "/data")]
    report = pod.run(plan(main, volumes=[volume("claim", "host", path=str(folder), gid=2000)])).ended()
    assert not report["error"]
    lines = [line.split()[3] for line in (pod.folder / "logs/main/0.log").read_text().splitlines()]
    assert lines == ["0:2000:2770", "0:2000:664", "1000:2000:644"]


def test_part_of_a_volume(pod):
    init = container("init", "mkdir -p /v/a/b; echo deep >/v/a/b/f; ln -s /etc /v/out", mounts=[mount("data", "/v")])
    mounts = [mount("data", "/m", sub_path="a/b"), mount("data", "/n", sub_path="made/now")]
    main = container("main", "cat /m/f; stat -c %a /n", mounts=mounts)
    bad = container("bad", "exit 0", mounts=[mount("data", "/m", sub_path="out")])
    report = pod.run(plan(main, bad, init=[init], volumes=[volume("data", "dir")])).ended()
    shown = (pod.folder / "logs/main/0.log").read_text().splitlines()
    # What is made is as open as the volume.
    assert [line.split()[3] for line in shown] == ["deep", "777"]
    reported = report["containers"]["bad"]
    assert (reported["reason"], reported["exit_code"]) == ("ContainerCannotRun", 128)
    assert reported["message"] == "subPath out leads out of volume data; name a path inside it"


@pytest.mark.parametrize(
    ("kind", "path", "why"),
    [
        ("Directory", "none", "is not there; it must be a Directory"),
        ("Directory", "file", "is no Directory; change its type or the path"),
        ("File", "folder", "is no File; change its type or the path"),
        ("Socket", "file", "is no Socket; change its type or the path"),
    ],
)
def test_path_of_the_node_that_is_not_what_it_should_be(pod, kind, path, why):
    place = pod.folder / "place"
    (place / "folder").mkdir(parents=True)
    (place / "file").touch()
    wanted = volume("host", "host", path=str(place / path), host_type=kind)
    report = pod.run(plan(container("main", "exit 0"), volumes=[wanted])).ended()
    assert report["error"]["reason"] == "FailedMount"
    assert report["error"]["message"] == f"volume host: hostPath {place / path} {why}"


@pytest.mark.parametrize(("kind", "made"), [("DirectoryOrCreate", "is_dir"), ("FileOrCreate", "is_file")])
def test_path_of_the_node_is_made(pod, kind, made):
    path = pod.folder / "place"
    wanted = volume("host", "host", path=str(path), host_type=kind)
    main = container("main", "test -e /h && stat -c %u:%g /h", mounts=[mount("host", "/h")])
    assert pod.run(plan(main, volumes=[wanted])).ended()["containers"]["main"]["exit_code"] == 0
    assert getattr(path, made)()


def test_image_is_a_volume(pod):
    """Whole and in part, for two containers of any user; removed with the pod."""
    image = volume("image", "image", path=str(pod.host.image))
    one = container("one", "sleep 1000", mounts=[mount("image", "/image"), mount("image", "/e", sub_path="etc")])
    nobody = {"uid": 1000, "gid": 1000, "groups": []}
    two = container("two", "sleep 1000", mounts=[mount("image", "/image")], user=nobody)
    kubelet = pod.run(plan(one, two, volumes=[image]))
    for name in ("one", "two"):
        kubelet.until(name, ready=True)
        assert said(kubelet, name, "head -n 1 /image/etc/passwd") == "root:x:0:0:root:/root:/bin/sh\n"
    assert said(kubelet, "one", "cat /e/group; touch /image/x 2>&1; /image/bin/busybox true 2>&1") == (
        "root:x:0:\ntouch: /image/x: Read-only file system\nsh: /image/bin/busybox: Permission denied\n"
    )
    kubelet.send({"type": "stop", "grace_s": 0})
    kubelet.ended()
    pod.exit_status()
    wait(pod.processes, lambda left: not left)


@pytest.mark.parametrize(("name", "path"), [("none.squashfs", None), ("bad.squashfs", "no image")])
def test_image_that_is_none_is_no_volume(pod, name, path):
    bad = pod.host.shared / name
    if path:
        bad.write_text(path)
    main = container("main", "sleep 1000", mounts=[mount("image", "/image")])
    error = pod.run(plan(main, volumes=[volume("image", "image", path=str(bad))])).ended()["error"]
    assert error["reason"] == "FailedMount"
    assert error["message"].startswith(f"volume image: {bad} cannot be mounted: ")


def test_part_that_an_image_lacks(pod):
    image = volume("image", "image", path=str(pod.host.image))
    main = container("main", "sleep 1000", mounts=[mount("image", "/image", sub_path="no/such")])
    reported = pod.run(plan(main, volumes=[image])).ended()["containers"]["main"]
    assert (reported["reason"], reported["exit_code"]) == ("ContainerCannotRun", 128)
    assert reported["message"] == "subPath no/such is not in the image of volume image; correct it"


def test_image_is_a_volume_for_a_user_without_subordinate_ids(supervised):
    pod = supervised("bob")
    image = volume("image", "image", path=str(pod.host.image))
    pod.run(
        plan(container("main", "cat /e/group", mounts=[mount("image", "/e", sub_path="etc")]), volumes=[image])
    ).ended()
    assert (pod.folder / "logs/main/0.log").read_text().endswith("root:x:0:\n")
