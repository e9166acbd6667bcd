"""Compiling a kernel takes longer than hypothesis' deadline; times are not what these tests prove."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("metrics", deadline=None)
settings.load_profile("metrics")
