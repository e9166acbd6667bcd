"""SIGINT and SIGTERM become exceptions, so that a command that they end closes and removes what it has open."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
#: The exit codes of a command that was interrupted, as shells count them.
CODES = [128 + number for number in _NUMBERS]
#: How soon an interruption that got lost comes again, in seconds: what could not be interrupted is over by then.
_AGAIN_AFTER = 0.01
#: Signals that came: what is raised in a handler may arrive as another exception, where a library wraps it.
came: list[int] = []


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    came.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _stop_again(_number: int, frame: FrameType | None) -> NoReturn:
    _stop(came[-1], frame)


def _keep(lost: sys.UnraisableHookArgs) -> None:
    """Let an interruption come again that arrived where Python can only print exceptions, and forgets them.

    Such places are the callbacks of weak references and finalisers (``PyErr_WriteUnraisable``).
    """
    if came and isinstance(lost.exc_value, (KeyboardInterrupt, SystemExit)):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER)
    else:
        sys.__unraisablehook__(lost)


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT and SystemExit at SIGTERM, unless the caller's shell ignores them."""
    handlers = {number: _stop for number in _NUMBERS if signal.getsignal(number) is not signal.SIG_IGN}
    for number, handler in (handlers | {signal.SIGALRM: _stop_again}).items():
        signal.signal(number, handler)
    hook, sys.unraisablehook = sys.unraisablehook, _keep
    try:
        yield
    finally:  # a signal while Python shuts down ends it without a word
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (*handlers, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        sys.unraisablehook = hook
