"""An interruption ends the command wherever it arrives, in one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
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


def test_interrupted_while_a_full_queue_takes_no_end(tmp_path, monkeypatch):
    """The thread that writes is told of the end all the same: else whoever closes the file waits for it for ever."""
    file = TableFile("metadata", tmp_path / "metadata", 1 << 16)
    file.write(tables.from_rows("metadata", [{"input": "x", "key": "k", "value": "v"}]))

    def interrupted(_rows: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(file._queue, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            file.end()
    closing = threading.Thread(target=file.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
