"""What every packet capture becomes: packets, flows, and one row of `inputs`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracetool import tables
from tracetool.kernels.records import FRAME
from tracetool.packets import link_types
from tracetool.packets.checksums import tcp_checksum
from tracetool.packets.decoder import Decoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from tracetool.diagnostics import DiagnosticLog

FRAMES = 1 << 14  # frames that are listed before they are decoded
SAMPLE = 256  # frames whose checksums are looked at


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
        self._resolutions: set[int] = set()
        self._checksums = {"good": 0, "partial": 0, "bad": 0}

    def declare(self, link: int, snaplen: int, resolution_ns: int) -> None:
        """Note an interface."""
        self._resolutions.add(resolution_ns)
        if link not in self.links:
            self.links.append(link)
        self.snaplen = max(self.snaplen, snaplen)
        self.resolution_ns = max(self.resolution_ns, resolution_ns)

    @property
    def count(self) -> int:
        """Frames so far."""
        return int(self._decoder.state["frames"])

    @property
    def last_time(self) -> int | None:
        """Time of the last frame so far, in nanoseconds since the epoch."""
        state = self._decoder.state
        return int(state["last_time"]) if state["started"] else None

    def decode(self, buffer: NDArray[np.uint8], count: int) -> Iterator[tuple[str, pa.Table]]:
        """Decode the first ``count`` of `frames`."""
        if count and self.count < SAMPLE:
            self._look(buffer, count)
        for table in self._decoder.feed(buffer, self.frames, count):
            yield "packets", table

    def _look(self, buffer: NDArray[np.uint8], count: int) -> None:
        """Judge the checksums of the first frames."""
        for frame in self.frames[: max(0, min(SAMPLE - self.count, count))]:
            start = int(frame["offset"])
            whole = buffer[start : start + int(frame["captured"])].tobytes()
            if verdict := tcp_checksum(whole, int(frame["link"])):
                self._checksums[verdict] += 1

    def _report(self) -> None:
        """Tell what is odd about the capture as a whole."""
        if len(self._resolutions) > 1:
            units = ", ".join(f"{unit} ns" for unit in sorted(self._resolutions))
            self.log.add(
                "several_clocks", f"interfaces have clocks of different resolution ({units}): their times may differ"
            )
        if len(self.links) > 1:
            names = ", ".join(map(link_types.name, self.links))
            self.log.add("mixed_link_types", f"interfaces have different link types: {names}", severity="info")
        looked = sum(self._checksums.values())
        if partial := self._checksums["partial"]:
            self.log.add(
                "checksum_offload",
                f"{partial} of the first {looked} TCP segments have a checksum that the network card was to fill in",
                severity="info",
                count=partial,
            )
        if bad := self._checksums["bad"]:
            self.log.add(
                "bad_checksum", f"{bad} of the first {looked} TCP segments have a wrong checksum; they count", count=bad
            )

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left: the last packets, `flows` and `inputs`."""
        if self.drops:
            self.log.add("capture_drops", f"the capturing host dropped {self.drops} packets", count=1)
        yield from self._decoder.finish(self.log)
        self._report()
        state = self._decoder.state
        times = (
            {"first_time": int(state["first_time"]), "last_time": int(state["last_time"])} if state["started"] else {}
        )
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
