"""What a user can leave in the home for root to fall into: shell scripts that run there, OUTSIDE being root's folder.

OUTSIDE holds `secret`, which only root reads, and `folder`; `ld.so.preload` and `new` are not there.
"""

from __future__ import annotations

from dataclasses import dataclass

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0LzMDaEIkQ4dpyGVSPGGmv3rMEm2HUyEkOxzuyDxAX admin's"
SECRET = "root:$6$salt$hash:1:0:::"  # noqa: S105 -- what no user may see
OUTSIDE_SCRIPT = (
    f"mkdir -m 755 OUTSIDE OUTSIDE/folder && chmod 755 OUTSIDE && (umask 077; echo '{SECRET}' > OUTSIDE/secret)"
)
# Everything of it: kind, owner, mode, size, and what the secret says.
OUTSIDE_STATE = "find OUTSIDE -printf '%p %y %U %G %m %s\\n' | sort; sha256sum OUTSIDE/secret"
_SSH = "mkdir -m 700 .ssh && "


@dataclass(frozen=True)
class Trap:
    """One of them.

    Attributes:
        script: makes it, as the user in the home.
        named: what the warning names, below the home; empty where there is nothing to warn of.
        has_keys: whether the admin's key is let in all the same.
    """

    script: str
    named: str = ".ssh"
    has_keys: bool = False


TRAPS = {
    "link-to-folder": Trap("ln -s OUTSIDE/folder .ssh"),
    "link-to-file": Trap("ln -s OUTSIDE/secret .ssh"),
    "link-to-nothing": Trap("ln -s OUTSIDE/new .ssh"),
    "file": Trap("echo text > .ssh"),
    "pipe": Trap("mkfifo .ssh"),
    "closed-folder": Trap("mkdir -m 0 .ssh"),
    "private-key-link-to-nothing": Trap(_SSH + "ln -s OUTSIDE/ld.so.preload .ssh/id_ed25519", ".ssh/id_ed25519", True),
    "public-key-link-to-nothing": Trap(_SSH + "ln -s OUTSIDE/new .ssh/id_ed25519.pub", ".ssh/id_ed25519.pub", True),
    "public-key-link-to-secret": Trap(_SSH + "ln -s OUTSIDE/secret .ssh/id_ed25519.pub", ".ssh/id_ed25519.pub", True),
    "public-key-url": Trap(_SSH + "echo file://OUTSIDE/secret > .ssh/id_ed25519.pub", ".ssh/id_ed25519.pub", True),
    "public-key-second-line": Trap(
        _SSH + f"printf '%s\\n' \"{KEY}\" file://OUTSIDE/secret > .ssh/id_ed25519.pub", ".ssh/id_ed25519.pub", True
    ),
    "public-key-pipe": Trap(_SSH + "mkfifo .ssh/id_ed25519.pub", ".ssh/id_ed25519.pub", True),
    "public-key-folder": Trap(_SSH + "mkdir .ssh/id_ed25519.pub", ".ssh/id_ed25519.pub", True),
    "authorized-link-to-secret": Trap(_SSH + "ln -s OUTSIDE/secret .ssh/authorized_keys", ".ssh/authorized_keys"),
    "authorized-link-to-nothing": Trap(
        _SSH + "ln -s OUTSIDE/ld.so.preload .ssh/authorized_keys", ".ssh/authorized_keys"
    ),
    "authorized-pipe": Trap(_SSH + "mkfifo .ssh/authorized_keys", ".ssh/authorized_keys"),
    "authorized-folder": Trap(_SSH + "mkdir .ssh/authorized_keys", ".ssh/authorized_keys"),
    "nothing": Trap("true", "", True),
}
