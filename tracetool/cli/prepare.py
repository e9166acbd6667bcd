"""What every command that takes inputs does first: make a dataset of them, and tell what is wrong with them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import typer

#: What an input costs at least, and what its bytes and packets add: roughly, see docs/scale.md.
INPUT_S, BYTES_PER_S, PACKETS_PER_S = 0.04, 100e6, 500e3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from tracetool.dataset import Dataset
    from tracetool.ingest import Ingested
    from tracetool.sources import Source


def effort(inputs: list[str]) -> tuple[int, float]:
    """Into how many parts the work on a command's inputs can be divided, and roughly how many seconds it takes."""
    from tracetool import sources
    from tracetool.dataset import Dataset
    from tracetool.reconstruct.inputs import pending

    if len(inputs) == 1 and Dataset.is_dataset(inputs[0]):
        return effort_of(pending(Dataset.open(inputs[0])))
    return reading_effort(sources.expand(inputs))


def reading_effort(found: list[Source]) -> tuple[int, float]:
    """See `effort`; of inputs that are to be read."""
    return len(found), sum(INPUT_S + (source.size_bytes or 0) / BYTES_PER_S for source in found)


def effort_of(packets: dict[str, int]) -> tuple[int, float]:
    """See `effort`; of inputs that are to be reconstructed."""
    return len(packets), INPUT_S * len(packets) + sum(packets.values()) / PACKETS_PER_S


@contextlib.contextmanager
def dataset_of(
    inputs: list[str], *, quiet: bool = False, told_each: bool = False, executor: Executor | None = None
) -> Iterator[Dataset]:
    """Dataset of a command's inputs; leaving it exits with code 4 if an input was damaged or failed.

    Parameters
    ----------
    told_each
        Whether each input that was read is told of in a line; else only those that are damaged.
    executor
        Reads and reconstructs; None: this process.

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
            inputs,
            executor=executor,
            progress=steps.of("B", lines=False),
            inferring=steps.of("packets", lines=False),
            told=told,
        ) as dataset,
    ):
        steps.stop()
        failed = [result for result in results if result.error is not None]
        if failed and len(failed) == len(results):
            raise typer.Exit(failed[0].error.exit_code if failed[0].error else 1)
        yield dataset
    if failed or any(result.damaged for result in results):
        raise typer.Exit(4)
