"""What every command that takes inputs does first: make a dataset of them, and tell what is wrong with them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracetool.dataset import Dataset
    from tracetool.ingest import Ingested


@contextlib.contextmanager
def dataset_of(inputs: list[str], *, quiet: bool = False, told_each: bool = False) -> Iterator[Dataset]:
    """Dataset of a command's inputs; leaving it exits with code 4 if an input was damaged or failed.

    Parameters
    ----------
    told_each
        Whether each input that was read is told of in a line; else only those that are damaged.

    Raises
    ------
    typer.Exit
        With code 3 if no input could be read, with 4 at the end if some were damaged or failed.
    """
    from tracetool.api import prepared
    from tracetool.cli import output
    from tracetool.cli.progress import progress

    results: list[Ingested] = []

    def told(result: Ingested) -> None:
        results.append(result)
        if result.error is not None or (not quiet and result.damaged):
            output.told(result)
        if told_each and not quiet and result.error is None:
            output.note(output.summary(result))

    with (
        progress(quiet=quiet) as steps,
        prepared(
            inputs, progress=steps.of("B", lines=False), inferring=steps.of("packets", lines=False), told=told
        ) as dataset,
    ):
        steps.stop()
        failed = [result for result in results if result.error is not None]
        if failed and len(failed) == len(results):
            raise typer.Exit(failed[0].error.exit_code if failed[0].error else 1)
        yield dataset
    if failed or any(result.damaged for result in results):
        raise typer.Exit(4)
