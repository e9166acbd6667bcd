"""From packet captures and kernel logs to tables, inferred congestion-control state, plots and fairness tables.

The names below are the whole public surface; the command line is nothing but these.

>>> import tracetool
>>> dataset = tracetool.ingest("capture.pcap.gz", "dataset")  # doctest: +SKIP
>>> tracetool.reconstruct(dataset)  # doctest: +SKIP
>>> dataset.scan("samples").collect()  # doctest: +SKIP
>>> tracetool.plot_cwnd(dataset).save("cwnd.html")  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tracetool._version import __version__
from tracetool.errors import (
    DatasetError,
    FormatError,
    InputError,
    NothingMatchedError,
    TracetoolError,
    UsageError,
)

if TYPE_CHECKING:
    from tracetool.api import fairness, flows, open, plot_cwnd, report, slow_starts  # noqa: A004
    from tracetool.dataset import Dataset
    from tracetool.ingest import ingest
    from tracetool.reconstruct import reconstruct

#: Where each name of the public surface lives: loaded on first use, so that importing tracetool stays cheap.
_LAZY = {
    "Dataset": "tracetool.dataset",
    "fairness": "tracetool.api",
    "flows": "tracetool.api",
    "ingest": "tracetool.ingest",
    "open": "tracetool.api",
    "plot_cwnd": "tracetool.api",
    "reconstruct": "tracetool.reconstruct",
    "report": "tracetool.api",
    "slow_starts": "tracetool.api",
}

__all__ = [
    "Dataset",
    "DatasetError",
    "FormatError",
    "InputError",
    "NothingMatchedError",
    "TracetoolError",
    "UsageError",
    "__version__",
    "fairness",
    "flows",
    "ingest",
    "open",
    "plot_cwnd",
    "reconstruct",
    "report",
    "slow_starts",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'tracetool' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


class _Package(ModuleType):
    """The package: a public function keeps its name when the module of the same name (`tracetool.ingest`) is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _LAZY or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)
