"""What a line of ``ss -ti`` says of a socket (``tcp_stats_print`` in iproute2's ``misc/ss.c``), token by token."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tracetool.parsers.logged import scaled
from tracetool.parsers.tcp_state import bbr_phase, in_flight, limited_by, phase_by_window

_MS_NS = 1_000_000
_SSTHRESH_PRINTED = 65535  # ss leaves a threshold out from here on
_SCALES = re.compile(r"(\d{1,2}),(\d{1,2})$")
_CC = re.compile(r"\s([a-z][\w-]{0,15})\s+(?:wscale|rto|backoff|rtt|ato|mss|pmtu|rcvmss|advmss|cwnd):")
_FLAGS = frozenset({"ts", "usec_ts", "sack", "ecn", "ecnseen", "fastopen", "qack", "bidir"})
#: Printed by iproute2 3.15 and later only: where one of them stands, no `unacked` means that nothing is.
_LATER_THAN_3_10 = frozenset(
    {"lastsnd:", "lastrcv:", "lastack:", "pacing_rate ", "pmtu:", "bytes_acked:", "bytes_sent:", "segs_out:"}
)
_TOKEN = re.compile(r"\s([a-z_]+:|send |pacing_rate |delivery_rate )(\S+)")
KEYS = frozenset(
    {
        "bytes_acked", "bytes_received", "bytes_sent", "cwnd", "delivered", "lost", "minrtt", "mss", "retrans", "rtt",
        "sacked", "segs_out", "snd_wnd", "ssthresh", "unacked",
    }
)  # fmt: skip
_WHOLE = frozenset(f"{key}:" for key in (KEYS | {"rcv_wnd"}) - {"minrtt", "retrans", "rtt"})
_RATE = re.compile(r"([\d.]+(?:e[+-]\d+)?)([TGMKk]?)bps")
_FACTORS = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BBR = re.compile(r"pacing_gain:([\d.]+),cwnd_gain:([\d.]+)")
_PADDED = re.compile(r"(?<!\S)(\S+) {5,}(\S+)")


class Info(NamedTuple):
    """What a socket's line says."""

    tokens: dict[str, str]  # as printed, by key with what follows it: "cwnd:", "send "
    numbers: dict[str, int | None]  # the whole numbers among them; None where it should be one
    cc: str | None
    flags: list[str]


def info_of(text: str) -> Info:
    """Take a line apart."""
    if "     " in text.strip():  # copied from a terminal, where padding tears words apart
        text = _PADDED.sub(_rejoined, text)
    text = f" {text} "
    cc = _CC.search(text)
    flags = text[: cc.start(1)].split() if cc else []
    if " app_limited " in text:
        flags.append("app_limited")
    tokens = dict(_TOKEN.findall(text))
    numbers = {key: _whole(tokens[key]) for key in _WHOLE.intersection(tokens)}
    return Info(tokens, numbers, cc.group(1) if cc and cc.group(1) not in _FLAGS else None, flags)


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _rejoined(found: re.Match[str]) -> str:
    left, right = found.groups()
    key, colon, _ = f"{left}{right}".partition(":")
    torn = colon and key in KEYS and right.partition(":")[0] not in KEYS
    return f"{left}{right}" if torn else found.group()


def note_facts(facts: dict[str, Any], info: Info) -> None:
    """Keep for the flow's row what a socket's line says."""
    if not facts:
        if scale := _SCALES.match(info.tokens.get("wscale:", "")):
            facts["window_scale_b"], facts["window_scale_a"] = int(scale.group(1)), int(scale.group(2))
        for flag, column in (("sack", "sack_permitted"), ("ts", "timestamps"), ("ecn", "ecn")):
            if flag in info.flags:  # shown with -o and -e only: its absence says nothing
                facts[column] = True
    # Before bytes_sent (iproute2 4.20), what was acknowledged is what is known to be sent.
    if (sent := info.numbers.get("bytes_sent:", info.numbers.get("bytes_acked:"))) is not None:
        facts["payload_bytes_a2b"] = sent
    if (received := info.numbers.get("bytes_received:")) is not None:
        facts["payload_bytes_b2a"] = received


def values_of(info: Info) -> tuple[Any, ...]:
    """Values of a sample from cwnd on, in the order of `tracetool.parsers.ss`'s columns."""
    tokens, number = info.tokens, info.numbers.get
    # What no token means: nothing, where the version of ss is one that would tell.
    zero = None if _LATER_THAN_3_10.isdisjoint(tokens) else 0
    # Only with a window a rate is printed, and only a window of 2 is left out.
    cwnd = number("cwnd:", 2 if "send " in tokens else None)
    ssthresh, mss, snd_wnd = number("ssthresh:"), number("mss:"), number("snd_wnd:")
    srtt, _, rttvar = tokens.get("rtt:", "").partition("/")
    now, _, retransmitted = tokens.get("retrans:", "").partition("/")
    unacked, lost, sacked = (number(key, zero) for key in ("unacked:", "lost:", "sacked:"))
    retrans = scaled(now, 1) if now else zero
    flight = in_flight(unacked, sacked, lost, retrans)
    if info.cc == "bbr":
        phase = _bbr_phase(tokens.get("bbr:"))
    elif "backoff:" in tokens:  # only a timeout backs off
        phase = "loss"
    else:
        phase = phase_by_window(cwnd, ssthresh, (lost, sacked, retrans), _SSTHRESH_PRINTED)
    return (
        cwnd,
        ssthresh,
        scaled(srtt, _MS_NS),
        scaled(rttvar, _MS_NS),
        scaled(tokens.get("minrtt:", ""), _MS_NS),
        flight * mss if flight is not None and mss else None,
        mss,
        number("bytes_acked:"),
        snd_wnd,
        number("rcv_wnd:"),
        _rate(tokens.get("pacing_rate ")),
        _rate(tokens.get("delivery_rate ")),
        phase,
        limited_by(flight, cwnd, unacked, mss, snd_wnd, app_limited="app_limited" in info.flags),
        info.cc,
        lost,
        sacked,
        scaled(retransmitted, 1) if retransmitted else zero,
        number("delivered:"),
    )


def _rate(text: str | None) -> int | None:
    if text is None:
        return None
    if text.endswith("bps") and (bits := _whole(text[:-3])) is not None:  # as nearly all are
        return bits
    found = _RATE.match(text)
    return scaled(found.group(1), _FACTORS[found.group(2)]) if found else None


def _bbr_phase(block: str | None) -> str | None:
    found = _BBR.search(block) if block else None
    gains = [scaled(gain, 100) for gain in found.groups()] if found else []
    return bbr_phase(*(gain / 100 for gain in gains if gain is not None)) if None not in gains and gains else None
