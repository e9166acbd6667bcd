"""What the senders were doing: tables of facts in, inferred tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from tracetool.dataset import Dataset
    from tracetool.ingest import Progress

__all__ = ["reconstruct"]


def reconstruct(
    dataset: Dataset | str | Path,
    *,
    flow: int | None = None,
    force: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Infer what the senders of every flow in a dataset were doing; inputs that this version has done are skipped.

    Parameters
    ----------
    dataset
        A dataset, or its folder.
    flow
        Only this flow of each input.
    force
        Do again what is done already.
    executor
        Works on the inputs; workers must find the dataset under the same name. None: threads of this process.
    progress
        Told how far it is.

    Returns
    -------
    Dataset
        The same, with the tables samples, rtts, events, recoveries, slow_starts and flow_stats.

    Raises
    ------
    DatasetError
        If there is no dataset, or a table in it cannot be read.
    DatasetWriteError
        If it cannot be written.

    Examples
    --------
    >>> reconstruct("runs/today").read("slow_starts")  # doctest: +SKIP
    """
    from tracetool.reconstruct import inputs

    return inputs.reconstruct(dataset, flow=flow, force=force, executor=executor, progress=progress)
