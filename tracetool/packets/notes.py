"""What the decoder met that was odd, as diagnostics: one row of each kind, with its count and first frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracetool.kernels import decode
from tracetool.kernels import layer_names as layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracetool.diagnostics import DiagnosticLog, Severity

_TEXTS: dict[int, tuple[str, Severity, str]] = {
    layers.CUT: ("headers_cut", "warning", "frames end inside a header below TCP or UDP: record with a larger snaplen"),
    layers.CUT_TRANSPORT: ("transport_cut", "warning", "frames end inside the TCP or UDP header: use a larger snaplen"),
    layers.MALFORMED: (
        "malformed_header",
        "warning",
        "frames have an impossible header below TCP or UDP; they are left out",
    ),
    layers.FRAGMENT: ("ip_fragment", "warning", "later IP fragments: their payload is not counted"),
    layers.UNKNOWN_LINK: (
        "unknown_link_type",
        "warning",
        "frames have a link type that cannot be read; they are left out",
    ),
    layers.TOO_DEEP: (
        "too_many_layers",
        "warning",
        "frames have more layers than are looked through; they are left out",
    ),
    decode.BAD_TCP: ("malformed_tcp", "warning", "segments have a header length that cannot be; they are left out"),
    decode.OPTIONS_CUT: ("options_cut", "warning", "frames end inside TCP's options: what was cut is unknown"),
    decode.FIRST_FRAGMENT: (
        "ip_first_fragment",
        "info",
        "first fragments of IP packets: only their own payload is counted",
    ),
    decode.SUPER_FRAME: ("super_frame", "info", "frames hold more than one segment (segmentation or receive offload)"),
    decode.TIME_BACKWARDS: ("time_backwards", "warning", "frames are earlier than the one before them"),
    decode.TIME_JUMP: ("time_jump", "warning", "frames come more than a day after the one before: was the clock set?"),
    decode.LONG_SCALE: ("window_scale_above_14", "warning", "window scales above 14 are read as 14 (RFC 7323)"),
}


def report(notes: NDArray[Any], log: DiagnosticLog) -> None:
    """Add a diagnostic for each kind of oddity that was met."""
    for code, (name, severity, text) in _TEXTS.items():
        count = int(notes["count"][code])
        if count:
            frame = int(notes["frame"][code])
            log.add(name, f"{count} {text}", severity=severity, frame=frame, time=int(notes["time"][code]), count=count)
