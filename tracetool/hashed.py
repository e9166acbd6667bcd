"""Bytes of an input as they are stored, hashed on their way to whoever reads them."""

from __future__ import annotations

import hashlib
import io
from typing import IO, Any, cast

_PIECE_BYTES = 1 << 18  # read and hashed in turn: what was read is still in the cache


class Hashed(io.RawIOBase):
    """Raw bytes as stored, hashed and counted while they are read."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.size_bytes = 0
        self._sha256 = hashlib.sha256()

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one read gives bytes; 0 at the end."""
        piece = memoryview(buffer)[:_PIECE_BYTES]
        count = cast("io.RawIOBase", self.raw).readinto(piece) or 0
        self._sha256.update(piece[:count])
        self.size_bytes += count
        return count

    def hexdigest(self) -> str:
        """SHA-256 of what was read."""
        return self._sha256.hexdigest()

    def close(self) -> None:
        """Close it and what it reads from."""
        if not self.closed:
            self.raw.close()
        super().close()
