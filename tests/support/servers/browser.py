"""A page in a real browser, Debian's Chromium without a screen: what it shows, says, and how wide it is."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 180
_PROBE = """<script>addEventListener("load", () => {
document.title = JSON.stringify({wide: document.documentElement.scrollWidth, seen: innerWidth,
text: document.body.innerText.length, plots: document.querySelectorAll("svg").length});
})</script>"""
_CONSOLE = re.compile(r"CONSOLE[^\n]*")
_TITLE = re.compile(r"<title>(\{.*?\})</title>")


@dataclass(frozen=True)
class Shown:
    """What a browser made of a page.

    Attributes:
        brightness: mean of its pixels, 0 to 255.
        colours: how many different ones.
        said: lines of its console.
    """

    brightness: float
    colours: int
    said: list[str]


def show(page: Path, picture: Path, width: int = 1280, *, dark: bool = False) -> Shown:
    """Take a picture of a page."""
    said = _run(page, width, f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={int(not dark)}").stderr
    rows = _pixels(picture.read_bytes())
    values = [value for row in rows for value in row]
    colours = {row[place : place + 3] for row in rows[::4] for place in range(0, len(row), 3)}
    return Shown(sum(values) / len(values), len(colours), _CONSOLE.findall(said))


def probe(page: Path, width: int) -> dict[str, int]:
    """Return how wide a page is in a window of some width, and what it holds."""
    copy = page.with_name("probe.html")
    copy.write_text(page.read_text().replace("</body>", f"{_PROBE}</body>"))
    found = _TITLE.search(_run(copy, width, "--dump-dom").stdout)
    assert found, "the page did not load"
    return json.loads(found[1])


def _run(page: Path, width: int, *options: str) -> subprocess.CompletedProcess[str]:
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    words += [f"--user-data-dir={page.parent / 'profile'}", f"--window-size={width},700", *options]
    command = ["chromium", *words, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)


def _pixels(png: bytes) -> list[bytes]:
    """Return the rows of a picture of 8 bits a channel (PNG, 6 and 9), without alpha."""
    width, height, depth, kind = struct.unpack_from(">IIBB", png, 16)
    channels = {2: 3, 6: 4}[kind]
    assert depth == 8
    data, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack_from(">I", png, place)
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += length + 12
    raw, size = zlib.decompress(data), width * channels
    above, rows = bytearray(size), []
    for row in range(height):
        begin = row * (size + 1)
        above = _unfiltered(raw[begin], bytearray(raw[begin + 1 : begin + 1 + size]), above, channels)
        rows.append(bytes(value for at, value in enumerate(above) if at % channels < 3))
    return rows


def _unfiltered(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        line[at] = (line[at] + _predicted(kind, left, above[at], corner)) & 255
    return line


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda value: abs(guess - value))
    return (0, left, up, (left + up) // 2)[kind]
