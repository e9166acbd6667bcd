"""An interruption ends the command wherever it arrives, in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tracetool import tables
from tracetool.parquet import TableFile

ROOT = Path(__file__).resolve().parents[2]
#: A command that the signal meets in the callback of a weak reference; it ends by itself after ten seconds.
COMMAND = """
import signal, sys, time, weakref
from tracetool import cli

class Thing:
    pass

@cli.app.command("wait")
def command():
    thing = Thing()
    kept = weakref.ref(thing, lambda reference: signal.raise_signal({number}))
    del thing
    time.sleep(10)

sys.argv = ["tracetool", "wait"]
cli.main()
"""
#: The same place, and an exception of its own.
OTHER = COMMAND.replace("signal.raise_signal({number})", "1 / 0").replace("time.sleep(10)", "pass")


def run(program: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_a_callback(number):
    done = run(COMMAND.format(number=int(number)))
    assert done.returncode == 128 + number
    assert done.stderr == "tracetool: interrupted: what was finished is kept, run it again to go on\n"


def test_other_exceptions_in_a_callback_are_told():
    done = run(OTHER)
    assert done.returncode == 0
    assert "ZeroDivisionError: division by zero" in done.stderr


class InterruptedAt:
    """Raises KeyboardInterrupt before the line of that number that this thread comes to, in any function it calls."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, _frame: object, event: str, _arg: object) -> InterruptedAt:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def test_interrupted_at_any_line_of_writing(tmp_path):
    """Whatever line it was, the file can be closed: no thread waits for another that does not know of it."""
    rows = tables.from_rows("metadata", [{"input": "x", "key": "k", "value": "v"}])
    lines, reached = 0, True
    while reached:
        lines += 1
        file = TableFile("metadata", tmp_path / str(lines), 1 << 16)
        file.write(rows)
        time.sleep(0.005)  # its thread waits for the next rows
        sys.settrace(tracer := InterruptedAt(lines))
        try:
            file.write(rows)
            file.end()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        reached = tracer.left == 0
        closing = threading.Thread(target=file.close, daemon=True)
        closing.start()
        closing.join(10)
        assert not closing.is_alive(), f"line {lines}"
    assert lines > 20  # it did trace something
