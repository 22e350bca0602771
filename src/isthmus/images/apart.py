"""A pull in a separate process, for a program with an event loop.

A large image's tree takes hundreds of MiB, and reading it a processor: neither is the kubelet's, whose memory and time
are all pods'. `python -I -m isthmus.images.apart` reads one request from standard input and writes one answer.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from isthmus.clients import process
from isthmus.clients.process import ProcessError, StalledError
from isthmus.images import errors
from isthmus.images.errors import ImageError
from isthmus.images.pull import pull as pull_here
from isthmus.images.workspace import Progress, Workspace
from isthmus.model.images import Pulled, Reference, parse

# What a pull itself ends by is looked at in there; here it is only waited for.
_LONGEST_S = 24 * 3600.0
# To remove what is half done.
_GRACE_S = 10.0


def pull(image: Reference, workspace: Workspace, progress: Progress) -> Pulled:
    """Do what `pull.pull` does; `progress` is called at the end.

    Raises:
        ImageError: it could not be had; nothing half is left.
    """
    request = json.dumps({"image": str(image), "place": _written(workspace)})
    patience = process.Patience(_LONGEST_S, unwanted=workspace.unwanted, grace_s=_GRACE_S)
    try:
        done = process.run_patiently([sys.executable, "-I", "-m", __name__], patience, {}, process.fed(request))
    except StalledError as error:
        raise ImageError(f"{image} is not wanted any more") from error
    except ProcessError as error:
        raise ImageError(f"{image} could not be pulled: {error}; see the log for what the pull did last") from error
    answer = json.loads(done.stdout)
    for word in answer["words"]:
        progress(word)
    if "error" in answer:
        raise _kind(answer["error"])(answer["message"])
    return Pulled(**{**answer["pulled"], "path": Path(answer["pulled"]["path"])})


def main() -> None:
    """Answer a request."""
    # As the end of a program that is waited for no more: what is half done goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    request = json.load(sys.stdin)
    words: list[str] = []
    answer: dict[str, Any] = {"words": words}
    try:
        answer["pulled"] = asdict(pull_here(parse(request["image"]), _workspace(request["place"]), words.append))
    except ImageError as error:
        answer.update(error=type(error).__name__, message=str(error))
    json.dump(answer, sys.stdout, default=str)


def _written(workspace: Workspace) -> dict[str, object]:
    document = asdict(replace(workspace, unwanted=process.never))
    return {
        key: str(value) if isinstance(value, Path) else value for key, value in document.items() if key != "unwanted"
    }


def _workspace(document: dict[str, Any]) -> Workspace:
    authfile = Path(document["authfile"]) if document["authfile"] else None
    return Workspace(
        **{**document, "cache": Path(document["cache"]), "scratch": Path(document["scratch"]), "authfile": authfile}
    )


def _kind(name: str) -> type[ImageError]:
    kind = getattr(errors, name, ImageError)
    return kind if isinstance(kind, type) and issubclass(kind, ImageError) else ImageError


if __name__ == "__main__":
    main()
