"""The whole image of a node: nothing secret in it, and as a disk it boots by BIOS and by EFI and is reached by SSH."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.clusters import playbooks
from tests.support.wait import wait

DISK_MIB = 6144
USER_DATA = "#cloud-config\nssh_authorized_keys: ['{key}']\n"


@pytest.fixture(scope="module")
def disk():
    """The path of the disk, made by its playbook."""
    packages = "name=qemu-system-x86,qemu-utils,ovmf,seabios,ipxe-qemu,mtools,dosfstools install_recommends=false"
    apt = ("ansible", "localhost", "--connection=local", "--module-name=ansible.builtin.apt", f"--args={packages}")
    assert playbooks.run("image-packages", *apt).rc == 0
    made = playbooks.run("image-disk", "ansible-playbook", "playbooks/image.yml", "-e", "image_format=qcow2")
    assert made.rc == 0
    return Path(made.output.rpartition("msg: ")[2].split()[0])


@pytest.fixture
def machine(disk, tmp_path, request):
    """A machine of QEMU with a larger disk than the image's, and a cloud's metadata; yields how to run a command."""
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    seed(tmp_path, (tmp_path / "key.pub").read_text().strip())
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", disk, tmp_path / "own.qcow2", f"{DISK_MIB}M")
    port = 20022 + len(request.param)
    command = [
        *("qemu-system-x86_64", "-m", "1024", "-smp", "2", "-nographic", "-monitor", "none", *request.param),
        *("-machine", "accel=tcg", "-cpu", "max"),  # a machine that is a virtual one itself may have a /dev/kvm in vain
        *("-drive", f"file={tmp_path / 'own.qcow2'},if=virtio"),
        *("-drive", f"file={tmp_path / 'seed.img'},if=virtio,format=raw"),
        *("-nic", f"user,model=virtio,hostfwd=tcp:127.0.0.1:{port}-:22"),
    ]
    with (
        (tmp_path / "console").open("wb") as console,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console) as process,
    ):
        yield Machine(port, tmp_path, process)
        process.kill()


class Machine:
    """One that runs."""

    def __init__(self, port, folder, process):
        self.folder, self.process = folder, process
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectTimeout=10", "LogLevel=ERROR")
        self.ssh = ["ssh", "-i", folder / "key", "-p", str(port), *(f"-o{option}" for option in options)]

    def output(self, command):
        """Run a command in it as the user that cloud-init makes; None where it does not answer."""
        done = subprocess.run([*self.ssh, "debian@127.0.0.1", command], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def has_ended(self, _):
        """Return whether it never will answer."""
        return self.process.poll() is not None


def run(*argv):
    subprocess.run([str(word) for word in argv], check=True)


def seed(folder, key):
    """Make the disk from which cloud-init takes its data."""
    (folder / "user-data").write_text(USER_DATA.format(key=key))
    (folder / "meta-data").write_text(json.dumps({"instance-id": "first", "local-hostname": "node"}))
    with (folder / "seed.img").open("wb") as disk:
        disk.truncate(2 << 20)
    run("mkfs.vfat", "-n", "CIDATA", folder / "seed.img")
    run("mcopy", "-i", folder / "seed.img", folder / "user-data", folder / "meta-data", "::/")


EFI = ("-bios", "/usr/share/ovmf/OVMF.fd")


@pytest.mark.parametrize("machine", [(), EFI], ids=["bios", "efi"], indirect=True)
def test_disk_boots_to_ssh_and_has_grown(machine):
    wait(lambda: machine.output("true"), lambda found: found is not None, machine.has_ended, timeout_s=1200)
    assert machine.output("hostname") == "node"
    assert int(machine.output("df --output=size -BM / | tail -1").strip("M ")) > 0.9 * DISK_MIB
    assert machine.output("systemctl is-enabled slurmd mariadb munge; true").split() == ["disabled"] * 3
    assert machine.output("/opt/isthmus/bin/python -c 'import aiohttp, cryptography'") == ""
    assert len(machine.output("cat /etc/machine-id")) == 32


def test_whole_image_holds_no_secret(disk):
    archives = sorted(disk.parent.glob("node-*.tar"), key=lambda path: path.stat().st_mtime)
    with tarfile.open(archives[-1]) as archive:
        members = {member.name.removeprefix("./"): member for member in archive.getmembers()}
    assert members["etc/machine-id"].size == 0
    private = ("etc/ssh/ssh_host_", "etc/munge/munge.key", "var/lib/dbus/machine-id", "etc/isthmus")
    assert not [name for name in members if name.startswith(private)]
