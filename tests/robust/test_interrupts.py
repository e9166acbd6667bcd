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

#: The signal comes as a lock was just taken; it must not stay so. Without the signal it ends after ten seconds.
LOCK = """
import signal, sys, threading, time
from tracetool import cli

lock = threading.Lock()
condition = threading.Condition(lock)

def interrupt(frame, event, _arg):
    if event == "c_return" and frame.f_code is threading.Condition.__enter__.__code__:
        sys.setprofile(None)
        signal.getsignal({number})({number}, frame)  # as Python calls it between two instructions of that frame

@cli.app.command("wait")
def command():
    try:
        sys.setprofile(interrupt)
        with condition:
            pass
        time.sleep(10)
    finally:
        print("held" if lock.locked() else "free")

sys.argv = ["tracetool", "wait"]
cli.main()
"""
#: The signal comes as a temporary folder is being removed.
FOLDER = """
import signal, sys, tempfile, time
from pathlib import Path
from tracetool import cli

def interrupt(frame, event, _arg):
    if event == "c_call" and frame.f_globals["__name__"] == "shutil" and _arg.__name__ == "unlink":
        sys.setprofile(None)
        signal.getsignal({number})({number}, frame)

@cli.app.command("wait")
def command():
    try:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "file").touch()
            sys.setprofile(interrupt)
        time.sleep(10)
    finally:
        print("left" if Path(folder).exists() else "gone")

sys.argv = ["tracetool", "wait"]
cli.main()
"""
#: The signal comes twice, as from `timeout`, which sends it to the process and to its group.
TWICE = """
import signal, sys
from tracetool import cli

@cli.app.command("wait")
def command():
    try:
        signal.raise_signal({number})
    finally:
        signal.raise_signal({number})
        print("cleaned up")

sys.argv = ["tracetool", "wait"]
cli.main()
"""


def run(program: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_a_callback(number):
    done = run(COMMAND.format(number=int(number)))
    assert done.returncode == 128 + number
    assert done.stderr == "tracetool: interrupted: what was finished is kept, run it again to go on\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("program", "told"), [(LOCK, "free"), (FOLDER, "gone"), (TWICE, "cleaned up")])
def test_interrupted_amid_steps_that_belong_together(program, told, number):
    done = run(program.format(number=int(number)))
    assert done.stdout == f"{told}\n"
    assert done.returncode == 128 + number
    assert done.stderr == "tracetool: interrupted: what was finished is kept, run it again to go on\n"


def test_an_alarm_without_an_interruption_is_none():
    done = run(COMMAND.format(number=int(signal.SIGALRM)).replace("time.sleep(10)", "pass"))
    assert (done.returncode, done.stderr) == (0, "")


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
