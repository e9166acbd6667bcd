"""``tracetool ingest``: captures and logs into a dataset."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from tracetool.cli.options import Hz, Inputs, Quiet
from tracetool.cli.workers import Jobs, Scheduler, workers
from tracetool.parsers import FORMATS

OUT_HELP = "Folder of the dataset, or object-store URL; made if absent, added to if there."
JOIN_HELP = "The inputs are parts of one capture (tcpdump -C or -G, ring buffers), in any order: they become one input."
KNOWN = (
    f"Known formats: {', '.join(FORMATS[:-1])}, and tables with a time and a cwnd column, which may have other names "
    "with --columns."
)
COLUMNS_HELP = "For plain tables: which of their columns is what, as time=t,cwnd_segments=w,...: names of `samples`."


def command(
    inputs: Inputs,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DATASET", help=OUT_HELP)],
    hz: Hz = None,
    columns: Annotated[str | None, typer.Option("--columns", metavar="NAME=COLUMN,...", help=COLUMNS_HELP)] = None,
    join: Annotated[bool, typer.Option("--join", help=JOIN_HELP)] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Read captures (pcap, pcapng) and kernel logs (tcp_probe, ss, ...) into a dataset of Parquet tables.

    Formats are recognised by content; gzip, zstd, xz, lz4 and bzip2 are looked through. Inputs whose content is there
    already are skipped. What is damaged is read as far as possible, and told.
    """
    from tracetool import sources
    from tracetool.cli import output
    from tracetool.cli.prepare import reading_effort
    from tracetool.cli.progress import progress
    from tracetool.dataset import Dataset
    from tracetool.ingest import ingest_each
    from tracetool.parsers.options import ParseOptions

    options = ParseOptions(hz=hz, columns=_pairs(columns))
    results = []
    found = sources.expand(inputs)
    units, seconds = reading_effort(found)
    with workers(jobs, scheduler, 1 if join else units, seconds) as executor, progress(quiet=quiet) as steps:
        update = steps.of("B", lines=False)
        for result in ingest_each(found, out, options=options, join=join, executor=executor, progress=update):
            results.append(result)
            if result.error is not None or not quiet:
                output.told(result)
            if not quiet and result.error is None:
                output.note(output.summary(result))
    if any(result.status == "added" for result in results):
        Dataset.open(out).note_command(shlex.join(["tracetool", *sys.argv[1:]]))
    failed = [result for result in results if result.error is not None]
    if failed and len(failed) == len(results):
        raise typer.Exit(failed[0].error.exit_code if failed[0].error else 1)
    if failed or any(result.damaged for result in results):
        raise typer.Exit(4)


def _pairs(text: str | None) -> dict[str, str]:
    pairs = [pair.split("=", 1) for pair in (text or "").split(",") if pair]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise typer.BadParameter("write NAME=COLUMN,NAME=COLUMN", param_hint="--columns")
    return {name.strip(): column.strip() for name, column in pairs}
