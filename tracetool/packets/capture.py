"""What every packet capture becomes: packets, flows, and one row of `inputs`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool import tables
from tracetool.kernels.records import FRAME
from tracetool.packets import link_types
from tracetool.packets.decoder import Decoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from tracetool.diagnostics import DiagnosticLog

FRAMES = 1 << 14  # frames that are listed before they are decoded


@dataclass
class Capture:
    """Collects what a capture's framing says, and decodes its frames.

    Attributes
    ----------
    format
        Name of the format.
    log
        Takes the diagnostics; its name becomes the `input` column.
    links
        Link types declared, in order.
    snaplen
        Largest one declared; 0: none.
    resolution_ns
        Coarsest clock declared; 0: none.
    drops
        Packets that the capturing host dropped; None where the format cannot say.
    frames : FRAME array
        Room for the frames of a block.
    """

    format: str
    log: DiagnosticLog
    links: list[int] = field(default_factory=list)
    snaplen: int = 0
    resolution_ns: int = 0
    drops: int | None = None
    frames: NDArray[Any] = field(default_factory=lambda: np.empty(FRAMES, FRAME))

    def __post_init__(self) -> None:
        self._decoder = Decoder(self.log.input)

    def declare(self, link: int, snaplen: int, resolution_ns: int) -> None:
        """Note an interface."""
        if link not in self.links:
            self.links.append(link)
        self.snaplen = max(self.snaplen, snaplen)
        self.resolution_ns = max(self.resolution_ns, resolution_ns)

    @property
    def count(self) -> int:
        """Frames so far."""
        return int(self._decoder.state["frames"])

    def decode(self, buffer: NDArray[np.uint8], count: int) -> Iterator[tuple[str, pa.Table]]:
        """Decode the first ``count`` of `frames`."""
        for table in self._decoder.feed(buffer, self.frames, count):
            yield "packets", table

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left: the last packets, `flows` and `inputs`."""
        yield from self._decoder.finish(self.log)
        state = self._decoder.state
        times = {"first_time": int(state["first_time"]), "last_time": int(state["last_time"])} if state["started"] else {}
        row = {
            "input": self.log.input,
            "format": self.format,
            **times,
            "records": self.count,
            "link_types": [link_types.name(link) for link in self.links],
            "snaplen_bytes": self.snaplen or None,
            "time_resolution_ns": self.resolution_ns or None,
            "capture_drops": self.drops,
            "damaged": self.log.damaged,
        }
        yield "inputs", tables.from_rows("inputs", [row])
