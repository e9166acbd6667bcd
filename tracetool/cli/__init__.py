"""The command line: parse words, call one library function, print. One file per command.

Only this package prints, exits or reads the environment. A command's module imports nothing heavy at its top, so that
``tracetool --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tracetool import kernels
from tracetool._version import __version__
from tracetool.cli import (
    check,
    compare,
    compare_runs,
    export,
    fairness,
    flows,
    ingest,
    interrupts,
    metrics,
    plot,
    reconstruct,
    report,
    schema,
    slow_starts,
)
from tracetool.errors import TracetoolError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is being completed: bash and zsh or fish; Windows' shell.
_COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_WORD_TO_COMPLETE")
SUMMARY = "From packet captures and kernel logs to tables, inferred congestion control, plots and fairness tables."

app = typer.Typer(
    name="tracetool",
    help=SUMMARY,
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 input unreadable or of unknown format, 4 done but an input was "
    "damaged or failed, 5 nothing matched, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("ingest", short_help="Read captures and kernel logs into a dataset.", epilog=ingest.KNOWN)(ingest.command)
app.command("reconstruct", short_help="Infer what the senders of a dataset were doing.")(reconstruct.command)
app.command("flows", short_help="List the flows: who, how much, how fast.")(flows.command)
app.command("slow-starts", short_help="List slow starts, and why each ended.")(slow_starts.command)
app.command("fairness", short_help="Measure how flows share, alone or over experiments.")(fairness.command)
app.command("check", short_help="Say what is odd about inputs, and how far to trust them.")(check.command)
app.command("compare", short_help="Hold the inference against the kernel's word.")(compare.command)
app.command("compare-runs", short_help="Compare test runs: bandwidth, ping, RTT, fairness.")(compare_runs.command)
plot.register(app)
app.command("report", short_help="Write one self-contained page about everything.")(report.command)
app.command("metrics", short_help="List the metrics: unit, input, source.")(metrics.command)
app.command("export", short_help="Print or write one table.")(export.command)
app.command("schema", short_help="Say what tables and columns mean.")(schema.command)


def _version(value: bool) -> None:
    if value:
        print(f"tracetool {__version__}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Take the options of the program itself."""


def _say_interrupted() -> None:
    print("tracetool: interrupted: what was finished is kept, run it again to go on", file=sys.stderr)


def _announce_compiling() -> None:
    print("tracetool: compiling, once for this version: the first run takes up to a minute longer", file=sys.stderr)


def _not_asked_for() -> None:
    """Stand for a command of which no more than the name and a line of help is needed."""


@contextlib.contextmanager
def _only_what_is_named(words: str) -> Iterator[None]:
    """Leave out the options of commands that do not occur in the command line, or in the one that is completed.

    Typer reads the options of all commands before it runs one, which takes longer than the rest.
    """
    callbacks = [command.callback for command in app.registered_commands]
    for command in app.registered_commands:
        if not command.name or command.name not in words:
            command.callback = _not_asked_for
    try:
        yield
    finally:
        for command, callback in zip(app.registered_commands, callbacks, strict=True):
            command.callback = callback


def _fill_closed() -> None:
    """Put nothing in the place of standard streams that are closed: else the first files opened would be there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the program runs


def main() -> None:
    """Run the command line and exit with its code."""
    _fill_closed()
    words = " ".join([*sys.argv[1:], *(os.environ.get(name, "") for name in _COMPLETED)])
    if sys.stderr.isatty() and not {"-q", "--quiet"} & set(sys.argv):
        kernels.compiling.append(_announce_compiling)
    with interrupts.heeded():
        try:
            with _only_what_is_named(words):
                app(prog_name="tracetool")
        except (KeyboardInterrupt, SystemExit) as stop:
            code = stop.code if isinstance(stop, SystemExit) else 128 + signal.SIGINT
            if code in interrupts.CODES:
                _say_interrupted()
            sys.exit(code)
        except TracetoolError as error:
            print(f"tracetool: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(error.exit_code)
        except OSError as error:  # of the help, which Typer prints
            print(f"tracetool: {error.strerror or error}", file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(0 if isinstance(error, BrokenPipeError) else 1)
        except MemoryError:
            print("tracetool: out of memory", file=sys.stderr)
            sys.exit(1)
        except BaseException:  # a library in Rust makes a panic of it, which is no Exception
            if not interrupts.came:
                raise
            _say_interrupted()
            sys.exit(128 + interrupts.came[0])
