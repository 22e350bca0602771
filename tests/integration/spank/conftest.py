"""The plugin of the unit tests, here with the kernel's own calls."""

from tests.unit.spank.conftest import built, daemon, host, plugin

__all__ = ["built", "daemon", "host", "plugin"]
