"""A sliding window over a stream, read ahead by a thread.

The thread reads (and with it decompresses and hashes, all without the GIL) into buffers while the frames in another
one are decoded. What is left of a record at the end of a block is copied before the start of the next one: buffers have
room for a block more, and two others for the longest record.
"""

from __future__ import annotations

import threading
from queue import LifoQueue, Queue
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from numpy.typing import NDArray

    from tracetool.sources import Stream

BLOCK_BYTES = 1 << 20  # small enough to stay in the cache between reading and decoding
_BUFFERS = 16  # so that reading goes on while frames are decoded or the disk is slow


class Blocks:
    """Blocks of a stream, each with the unread rest of the one before it.

    Use as a context manager: leaving it stops the thread.

    Parameters
    ----------
    stream
        What to read.
    reserve
        The longest rest that may have to be carried over.

    Attributes
    ----------
    buffer : uint8 array
        Holds the window in ``buffer[at:used]``.
    at, used
        Bounds of what is there and not yet consumed; ``at`` is moved by the reader of the window.
    final
        Whether the stream has ended: what is in the window is the last of it.
    """

    def __init__(self, stream: Stream, reserve: int, block: int = BLOCK_BYTES) -> None:
        self._stream = stream
        self._reserve = reserve
        self._block = block
        self._empty: Queue[NDArray[np.uint8] | None] = LifoQueue()
        self._full: Queue[tuple[NDArray[np.uint8], int] | BaseException] = Queue()
        self._near = min(reserve, block)
        for _ in range(_BUFFERS):
            self._empty.put(np.empty(self._near + block, np.uint8))
        self._wide: list[NDArray[np.uint8]] = []
        self.buffer: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.at = 0
        self.used = 0
        self.final = False
        self._base = 0  # offset in the stream of the buffer's first byte; negative at first
        self._thread = threading.Thread(target=self._read, name="read ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._empty.put(None)
        if kind is None:  # else it may wait for a pipe that gives nothing; it ends with the process
            self._thread.join()

    def _read(self) -> None:
        try:
            while (buffer := self._empty.get()) is not None:
                view = buffer[self._near :].data
                filled = 0
                while filled < self._block and (count := self._stream.readinto(view[filled:])):
                    filled += count
                self._full.put((buffer, filled))
                if filled < self._block:
                    return
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
            self._full.put(error)

    @property
    def offset(self) -> int:
        """Offset in the stream of ``buffer[at]``."""
        return self._base + self.at

    def advance(self) -> None:
        """Move on to the next block; the rest of this one stays in the window.

        Raises
        ------
        OSError
            What the reading thread met.
        """
        rest = self.used - self.at
        offset = self.offset if len(self.buffer) else 0
        assert rest <= self._reserve
        item = self._full.get()
        if isinstance(item, BaseException):
            raise item
        buffer, filled = item
        start = self._near
        if rest > start:
            block, start = buffer, self._reserve
            buffer = self._wide.pop() if self._wide else np.empty(start + self._block, np.uint8)
            buffer[start : start + filled] = block[self._near : self._near + filled]
            self._empty.put(block)
        if rest:
            buffer[start - rest : start] = self.buffer[self.at : self.used]
        if len(self.buffer) > self._near + self._block:
            self._wide.append(self.buffer)
        elif len(self.buffer):
            self._empty.put(self.buffer)
        self.buffer, self.at, self.used = buffer, start - rest, start + filled
        self._base = offset - self.at
        self.final = filled < self._block

    def skip(self, count: int) -> int:
        """Skip bytes that need not be in one window; return how many were there."""
        left = count
        while left:
            step = min(left, self.used - self.at)
            self.at += step
            left -= step
            if left:
                if self.final:
                    break
                self.advance()
        return count - left

    def resynchronise(self, find: Callable[[], tuple[int, int]], found: int, what: str) -> str:
        """Skip to the next place where the input makes sense again, or to its end; say in words how far that was.

        Parameters
        ----------
        find
            Looks through the window: returns a place, and ``found``, or something else where more bytes are needed
            (what is before the place need not be looked at again).
        what
            What is sought.
        """
        start = self.offset
        self.at += 1
        while True:
            self.at, status = find()
            if status == found:
                return f"went on {self.offset - start} bytes further"
            if self.final:
                self.at = self.used
                return f"no {what} in the {self.offset - start} bytes up to the end"
            self.advance()
