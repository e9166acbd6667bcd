"""Bytes of an input as they are stored, hashed on their way to whoever reads them."""

from __future__ import annotations

import hashlib
import io
import threading
from queue import Queue
from typing import IO, Any, cast

LONG_BYTES = 1 << 20  # what is longer is hashed by a thread of its own
_AHEAD = 4  # pieces that may wait to be hashed


class Hashed(io.RawIOBase):
    """Raw bytes as stored, hashed and counted while they are read; what is long is hashed by a thread of its own."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.size_bytes = 0
        self._sha256 = hashlib.sha256()
        self._pieces: Queue[bytes | None] = Queue(_AHEAD)
        self._thread: threading.Thread | None = None

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one read gives bytes; 0 at the end."""
        count = cast("io.RawIOBase", self.raw).readinto(buffer) or 0
        piece = memoryview(buffer)[:count]
        self.size_bytes += count
        if self._thread is None and self.size_bytes > LONG_BYTES:
            self._thread = threading.Thread(target=self._work, name="hash", daemon=True)
            self._thread.start()
        if self._thread is None:
            self._sha256.update(piece)
        elif count:
            self._pieces.put(bytes(piece))
        return count

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            self._sha256.update(piece)

    def hexdigest(self) -> str:
        """SHA-256 of what was read."""
        if self._thread is not None:
            self._pieces.put(None)
            self._thread.join()
            self._thread = None
        return self._sha256.hexdigest()

    def close(self) -> None:
        """Close it and what it reads from."""
        if not self.closed:
            self.hexdigest()  # so that the thread ends
            self.raw.close()
        super().close()
