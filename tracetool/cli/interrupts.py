"""SIGINT and SIGTERM become exceptions, so that a command that they end closes and removes what it has open."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
#: The exit codes of a command that was interrupted, as shells count them.
CODES = [128 + number for number in _NUMBERS]
#: How soon an interruption that got lost, or came amiss, comes again, in seconds: what it met is over by then.
_AGAIN_AFTER = 0.01
#: How often an interruption that comes amiss is put off, before it is raised nevertheless.
_PUT_OFF = 200
#: A signal so soon after another one, in seconds, is the same interruption: ``timeout`` sends it to a process, and then
#: to the group that it is in.
_SAME = 0.5
#: Modules whose functions take and give back locks in several steps.
_STEPS = frozenset(
    {"threading", "queue", "concurrent.futures._base", "concurrent.futures.thread", "importlib._bootstrap"}
)
#: Their functions that wait for others, and may be interrupted.
_WAITS = frozenset({"wait", "join", "_wait_for_tstate_lock"})
#: Functions that may not be interrupted, nor anything that they call: threads and processes start, folders go.
_WHOLE = frozenset(
    {
        ("threading", "start"),
        ("concurrent.futures.thread", "submit"),
        ("concurrent.futures.process", "submit"),
        ("shutil", "rmtree"),
    }
)
#: Signals that came: what is raised in a handler may arrive as another exception, where a library wraps it.
came: list[int] = []
_times: list[float] = []  # when they came
_put_off: list[int] = []  # those of them that came amiss, once for each time


def _stop(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if came and now - _times[-1] < _SAME:
        return
    came.append(number)
    _times.append(now)
    _stop_again(number, frame)


def _stop_again(_number: int, frame: FrameType | None) -> None:
    if not came:  # somebody else's alarm
        return
    if _amiss(frame) and len(_put_off) < _PUT_OFF:
        _put_off.append(came[-1])
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER)
    else:
        raise KeyboardInterrupt if came[-1] == signal.SIGINT else SystemExit(128 + came[-1])


def _amiss(frame: FrameType | None) -> bool:
    """Whether an exception would leave what nobody ends: a lock that is not given back, a thread that is not known of.

    Other threads would wait for it, and the command for them.
    """
    if frame is not None and _module(frame) in _STEPS and frame.f_code.co_name not in _WAITS:
        return True
    while frame is not None:
        if (_module(frame), frame.f_code.co_name) in _WHOLE:
            return True
        frame = frame.f_back
    return False


def _module(frame: FrameType) -> object:
    return frame.f_globals.get("__name__")


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
