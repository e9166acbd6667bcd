"""What can go wrong, as a small tree.

::

    TracetoolError
    ├── UsageError            exit code 2: the call makes no sense
    ├── InputError            exit code 3: an input cannot be read
    │   └── FormatError       exit code 3: nobody knows its format
    ├── DatasetError          exit code 3: a dataset is missing, or not one of ours
    └── NothingMatchedError   exit code 5: no such flow

A message is one line: what, where (file, byte offset or line), and what would be right. Damage inside an input is not
an exception: it becomes a row of `diagnostics`, and what could be read is kept.
"""

from __future__ import annotations


class TracetoolError(Exception):
    """Root of all errors that tracetool raises on purpose."""

    exit_code = 1


class UsageError(TracetoolError, ValueError):
    """A call or a command line that makes no sense."""

    exit_code = 2


class InputError(TracetoolError, OSError):
    """An input that cannot be opened or read at all."""

    exit_code = 3


class FormatError(InputError):
    """An input whose format no parser knows."""


class DatasetError(TracetoolError, OSError):
    """A dataset that is missing, not a dataset, or of a later version."""

    exit_code = 3


class NothingMatchedError(TracetoolError, LookupError):
    """A selection (a flow, a time span) that matches nothing."""

    exit_code = 5
