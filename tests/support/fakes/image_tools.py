"""skopeo, Apptainer and mksquashfs for tests of pulls: strict, and with the real programs' own words.

REFUSALS holds what a user may do wrong. The same cases run against these fakes and against a live cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.clients import process
from isthmus.clients.process import Finished, ProcessError
from tests.support.attacks import hostile_images

REGISTRY = "ctl:5000"
BASE = [hostile_images.file("bin/sh", "base"), hostile_images.file("etc/gone")]
TOP = [hostile_images.file("bin/true"), hostile_images.file("etc/.wh.gone", "")]
MANIFEST = hostile_images.manifest([BASE, TOP])
DIGEST = f"sha256:{hashlib.sha256(MANIFEST.encode()).hexdigest()}"


@dataclass(frozen=True)
class Refusal:
    """A pull that must fail: which image, with whose credentials, and what the user then reads."""

    image: str
    authfile: str
    reported: str


REFUSALS = {
    "unknown name": Refusal("{registry}/isthmus/none", "", "there is no image docker://{registry}/isthmus/none:latest"),
    "unknown tag": Refusal("{registry}/isthmus/busybox:none", "", "there is no image"),
    "missing file": Refusal("oci-archive:none.tar", "", "there is no image oci-archive:none.tar"),
    "wrong password": Refusal("{registry}/isthmus/busybox", "wrong.json", "to the credentials in wrong.json"),
    "no registry": Refusal("{host}:1/isthmus/busybox", "", "{host}:1 cannot be reached"),
}
_UNKNOWN = "reading manifest none: manifest unknown"
_SKOPEO = 'time="2026-01-01T00:00:00Z" level=fatal msg="Error parsing image name: {}"'


@dataclass
class FakeTools:
    """Stands in for `process.run`: a registry with isthmus/busybox, and disks that may be full.

    Attributes:
        full: program names that find no space.
        calls: the words of each program that was started.
        while_making: called when Apptainer runs.
        downloaded: the digests of blobs that skopeo wrote.
        layers: of each image.
        while_copying: called when skopeo runs.
    """

    full: set[str] = field(default_factory=set)
    calls: list[list[str]] = field(default_factory=list)
    while_making: Callable[[], object] = lambda: None
    downloaded: list[str] = field(default_factory=list)
    layers: dict[str, hostile_images.Layers] = field(default_factory=lambda: {"busybox": [BASE, TOP]})
    while_copying: Callable[[], object] = lambda: None

    def stand_in(self, monkeypatch: Any) -> None:
        """Take the place of the programs, of those that take long too."""
        monkeypatch.setattr(process, "run", self)
        monkeypatch.setattr(process, "run_patiently", lambda argv, *_: self(argv))

    def __call__(self, argv: Sequence[str | Path], **_: Any) -> Finished:
        """Do what the program would do."""
        words = [str(word) for word in argv]
        if "--" in words:
            words = [word for word in words[words.index("--") + 1 :] if not word.startswith("--tmpdir=")]
        else:
            assert words[0] != "apptainer" and "oci-archive:" not in " ".join(words), "what unpacks is confined"
        self.calls.append(words)
        known = {
            ("skopeo", "inspect"): self._inspect,
            ("skopeo", "copy"): self._copy,
            ("apptainer", "--quiet"): self._unpack,
            ("mksquashfs", words[1]): self._pack,
        }
        if tuple(words[:2]) not in known:
            raise AssertionError(f"nobody expects {words}")
        known[words[0], words[1]](words)
        return Finished(hostile_images.manifest(self._image(words[-1])) if words[1] == "inspect" else "", "")

    def count(self, program: str, verb: str = "") -> int:
        """Count how often a program was started, with this verb if there is one."""
        return sum(words[0] == program and (not verb or verb in words) for words in self.calls)

    def _inspect(self, words: list[str]) -> None:
        image, rest = words[-1], " ".join(words)
        if "wrong.json" in rest:
            raise _failed(words, _SKOPEO.format("reading manifest latest: authentication required"))
        if image.startswith("oci-archive:"):
            raise _failed(words, _SKOPEO.format('archive file not found: \\"none.tar\\"'))
        if not image.startswith(f"docker://{REGISTRY}/"):
            raise _failed(words, _SKOPEO.format('Get \\"https://ctl:1/v2/\\": dial tcp: connect: connection refused'))
        if not self._image(image) or image.endswith(":none"):
            raise _failed(words, _SKOPEO.format(_UNKNOWN))

    def _image(self, reference: str) -> hostile_images.Layers:
        name = reference.rpartition("/")[2].partition("@")[0].partition(":")[0]
        return self.layers.get(name, [])

    def _copy(self, words: list[str]) -> None:
        self.while_copying()
        layers = self._image(words[-2])
        digest = hashlib.sha256(hostile_images.manifest(layers).encode()).hexdigest()
        assert words[-2].endswith(f"@sha256:{digest}"), "what was resolved is what is copied"
        self._fail_when_full(words, "writing blob: write blob: no space left on device")
        kind, _, path = words[-1].partition(":")
        if kind == "dir":
            assert "--dest-decompress" in words
            hostile_images.copied(Path(path), layers, "/none")
            return
        assert "--dest-oci-accept-uncompressed-layers" in words
        blobs = Path(path.removesuffix(":image"), "blobs/sha256")
        there = set(blobs.iterdir())
        hostile_images.make(blobs.parent.parent, layers, "/none")
        self.downloaded += sorted(path.name for path in set(blobs.iterdir()) - there)

    def _unpack(self, words: list[str]) -> None:
        assert Path(words[-1].removeprefix("oci:")).is_dir()
        folder = Path(words[-2])
        (folder / ".singularity.d").mkdir(parents=True)
        (folder / ".singularity.d/runscript").touch()
        (folder / "tmp").mkdir()
        self.while_making()
        self._fail_when_full(words, "FATAL: error writing layer: no space left on device")

    def _pack(self, words: list[str]) -> None:
        assert (words[1], words[3]) == ("-", "-tar"), "what is packed comes as a stream"
        assert not Path(words[2]).exists(), "mksquashfs would append"
        Path(words[2]).write_text("half")
        self._fail_when_full(words, "Write failed because No space left on device")
        Path(words[2]).write_text("whole")

    def _fail_when_full(self, words: list[str], stderr: str) -> None:
        if words[0] in self.full:
            raise _failed(words, stderr)


def _failed(words: list[str], stderr: str) -> ProcessError:
    return ProcessError(" ".join(words), 1, "ended with status 1", "", stderr)
