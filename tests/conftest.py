"""What tests of several folders share."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable

# How long an example takes, with kernels to compile and other work on the machine, is not what any test proves.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background; what tests start would, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run tracetool in this process: (exit code, standard output, standard error)."""
    from tracetool.cli import main

    def call(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tracetool", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return call
