"""How kernels are compiled: once per installed version, cached in the user's cache folder.

A kernel is a plain function over NumPy arrays and integers. It runs without the GIL, so that threads can overlap it
with reading and writing. Where the cache folder cannot be written, kernels are compiled anew in each process.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import config, event

from tracetool import kernels
from tracetool._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def _fingerprint() -> str:
    """Digest of the kernels' sources: numba itself does not see a change in a kernel that another one calls."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns};".encode())
    return digest.hexdigest()[:12]


def cache_folder() -> Path:
    """Folder for compiled kernels, by the XDG base directory specification, one per version of tracetool."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tracetool" / f"kernels-{__version__}-{_fingerprint()}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


_config = cast("Any", config)  # its attributes are made at run time
if not _config.CACHE_DIR and _writable(cache_folder()):
    _config.CACHE_DIR = str(cache_folder())
CACHED = bool(_config.CACHE_DIR)


class _Announcer(event.Listener):
    """Tells whoever asked that a kernel is being compiled; what comes from the cache is not compiled."""

    def on_start(self, _event: object) -> None:
        while kernels.compiling:
            kernels.compiling.pop()()

    def on_end(self, _event: object) -> None:
        pass


cast("Any", event).register("numba:compile", _Announcer())


def kernel(function: F) -> F:
    """Compile a function on its first call (numba, no Python objects, no GIL)."""
    return cast("F", numba.njit(cache=CACHED, nogil=True)(function))
