"""Coverage-guided fuzzing of one parser group with atheris: ``python -m tests.fuzz.fuzz GROUP [libFuzzer options]``.

Each group has a folder of found inputs, which starts with the seeds. A finding is written to ``crash-...``; put it
into ``tests/fuzz/found/GROUP/`` once it is fixed, and `tests/fuzz/test_found.py` keeps it so.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import atheris

from tests.fuzz import interpreted

if TYPE_CHECKING:
    from collections.abc import Callable

interpreted.install()

with atheris.instrument_imports(include=["tracetool"]):
    import tracetool.kernels.decode
    import tracetool.kernels.pcap_frames
    import tracetool.kernels.pcapng_frames
    import tracetool.packets.decoder  # noqa: F401 - the first import is the one that counts branches
    from tests.fuzz import captures, seeds
    from tests.fuzz.contract import parse
    from tests.fuzz.frames import FRAMES
    from tracetool import parsers

    for name in parsers.FORMATS:
        parsers.get(name)

#: Formats that are fuzzed in one run; the first byte of the data says which of them the rest is.
FAMILIES = {
    "captures": ("pcap", "pcapng"),
    "kernel": ("tcp_probe", "proc_tcpprobe", "tcp_probe_plus", "ss", "tc_qdisc", "nstat", "siftr"),
    "tools": ("iperf3", "flent", "qlog", "tcp_info", "csv_table"),
}
GROUPS = ("frames", *FAMILIES, *parsers.FORMATS)
LINKS = sorted({link for link, _ in FRAMES.values()})


def frames(data: bytes) -> None:
    """Take the first byte as the link type, and a few frames of lengths that come before them."""
    if not data:
        return
    link, rest, cut = LINKS[data[0] % len(LINKS)], data[1:], []
    while rest and len(cut) < 8:
        size = rest[0]
        cut.append(rest[1 : 1 + size])
        rest = rest[1 + size :]
    parse("pcap", captures.pcap(cut, link=link))


def frame_seeds() -> list[bytes]:
    return [bytes([LINKS.index(link)]) + (bytes([min(len(f), 255)]) + f[:255]) * 2 for link, f in FRAMES.values()]


def family_seeds(formats: tuple[str, ...]) -> list[bytes]:
    return [bytes([number]) + data for number, name in enumerate(formats) for data in seeds.seeds(name)]


def family(formats: tuple[str, ...], data: bytes) -> None:
    """Parse the data after the first byte as the format that this byte stands for."""
    if data:
        parse(formats[data[0] % len(formats)], data[1:])


def chosen(group: str) -> tuple[list[bytes], Callable[[bytes], None]]:
    """Return the seeds of a group, and what takes one input of it."""
    if group == "frames":
        return frame_seeds(), frames
    if group in FAMILIES:
        return family_seeds(FAMILIES[group]), partial(family, FAMILIES[group])
    return seeds.seeds(group), partial(parse, group)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in GROUPS:
        sys.exit(f"usage: python -m tests.fuzz.fuzz {{{','.join(GROUPS)}}} [-max_total_time=1800 ...]")
    group = sys.argv.pop(1)
    corpus = Path(tempfile.gettempdir()) / "tracetool-fuzz" / group
    corpus.mkdir(parents=True, exist_ok=True)
    first, one = chosen(group)
    for data in first:
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    defaults = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=1500", f"-artifact_prefix={corpus.parent}/{group}-"]
    atheris.Setup([sys.argv[0], *defaults, *sys.argv[1:], str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
