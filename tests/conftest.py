"""How long an example takes, with kernels to compile and other work on the machine, is not what any test proves."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background; what tests start would, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
