"""Hypothesis has no deadline here: other tests share the processors."""

from hypothesis import settings

settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
