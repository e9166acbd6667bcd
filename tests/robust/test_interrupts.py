"""An interruption that arrives where Python forgets exceptions ends the command all the same, in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
