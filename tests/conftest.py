"""How long an example takes, with kernels to compile and other work on the machine, is not what any test proves."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
