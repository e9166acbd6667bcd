"""What senders were doing, inferred from their packets: the state behind every ACK.

The packets are replayed as each sender saw them (`tracetool.kernels.senders`), the window under every hypothesis of
the congestion control (`tracetool.reconstruct.hypotheses`); what fits best is written down with bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import senders as ks
from tracetool.kernels import window_columns as wc
from tracetool.reconstruct.hypotheses import INITIAL_WINDOW, Choices, choose
from tracetool.reconstruct.replayed import Replayed, replayed
from tracetool.reconstruct.under_way import likely

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch

    Ints = npt.NDArray[np.int64]

#: How far a departure that was not seen may be wrong.
BLUR_NS = 1_000_000
ALMOST_ALL = 0.999
#: The ECN field of a packet: not capable of it, and marked as having met congestion.
NOT_CAPABLE, MARKED = 0, 3


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the inference says of some senders.

    Attributes
    ----------
    replayed
        Their events.
    choices
        The windows that explain their sends.
    cc
        Congestion control of each: reno, cubic, bbr or unknown; None where there is too little data to say.
    cc_confidence
        How sure that is, 0 to 1.
    """

    replayed: Replayed
    choices: Choices
    cc: list[str | None]
    cc_confidence: list[float | None]


def infer(batch: Batch, copy: npt.NDArray[np.bool_], asked: Ints, scale_known: npt.NDArray[np.bool_]) -> Inferred:
    """Infer the state of senders.

    Parameters
    ----------
    batch
        Packets of whole flows.
    copy
        Frames captured twice: they are left out.
    asked
        ``(senders, ASKED_WIDTH)``: which, and what is known of each, see `tracetool.kernels.senders`.
    scale_known
        Of each sender: whether the handshake told the scale of the windows that it receives.

    Examples
    --------
    >>> infer(batch, tracked.copy, asked, scale_known).cc  # doctest: +SKIP
    ['cubic', 'cubic']
    """
    found = replayed(batch, copy, asked)
    for sender in np.flatnonzero(~scale_known & ~found.scaled).tolist():
        mine = slice(found.at[sender], found.at[sender + 1])
        _guess_room(found.events[mine], found.window_raw[mine])
    elsewhere = asked[:, ks.ELSEWHERE] != 0
    # without its timestamps a sender elsewhere seems to pace at the rate of the bottleneck, whatever it runs
    choices = choose(found, np.where(elsewhere, _blur(found), 0), elsewhere & ~found.stamped)
    for sender in np.flatnonzero(~found.begun).tolist():
        mine = slice(found.at[sender], found.at[sender + 1])
        ecn = _uses_ecn(batch, *asked[sender, [ks.FLOW, ks.WAY]].tolist())
        _threshold_before(choices, sender, choices.window[mine], found.events[mine], ecn=ecn)
        if choices.best(sender).algorithm != wc.BBR:
            _never_filled(choices.window[mine], found.events[mine])
    named = [choices.cc(sender) for sender in range(len(asked))]
    return Inferred(found, choices, [cc for cc, _ in named], [sure for _, sure in named])


def _blur(found: Replayed) -> Ints:
    """Segments that are delivered while a projected departure may be wrong: a tick of the usual timestamp clock."""
    first, last = found.at[:-1], np.maximum(found.at[1:] - 1, found.at[:-1])
    several = last > first
    first, last = np.where(several, first, 0), np.where(several, last, 0)
    delivered, time = (found.events[:, column] for column in (rc.DELIVERED_BEFORE, rc.TIME))
    if not len(time):
        return np.ones(len(first), np.int64)
    elapsed = np.maximum(time[last] - time[first], 1)
    return 1 + np.where(several, (delivered[last] - delivered[first]) * BLUR_NS // elapsed, 0)


def _guess_room(events: Ints, window_raw: Ints) -> None:
    """Without the window scale: the smallest that allows the flight there was, and the room it leaves."""
    usable = (events[:, rc.KIND] == rc.ON_ACK) & (window_raw > 0)
    if not usable.any():
        return
    flight = events[:, rc.NXT] - events[:, rc.UNA]
    needed = np.quantile(flight[usable] / window_raw[usable], ALMOST_ALL)
    scale = int(np.clip(np.ceil(np.log2(max(needed, 1.0))), 0, 14))
    events[:, rc.ROOM] = np.where(usable, (window_raw << scale) - flight, -1)


def _never_filled(window: Ints, events: Ints) -> None:
    """Take for a window that never shows, nor is reduced, the one with which slow start stops for want of use.

    It grows up to twice the most segments that were out (`tcp_is_cwnd_limited`), from the initial window on.
    """
    if len(events) and window[:, rw.OUT_UNKNOWN].all() and not (events[:, rc.OPS] & rc.OP_REDUCTIONS).any():
        window[:, rw.OUT_CWND] = max(2 * int(events[:, rc.OUT_SENT].max()), INITIAL_WINDOW)


def _uses_ecn(batch: Batch, flow: int, side: int) -> bool:
    """Whether a side of a flow marks its packets as capable of ECN (RFC 3168, section 5)."""
    mine = slice(batch.bounds[flow], batch.bounds[flow + 1])
    capable = (batch.ecn[mine] > NOT_CAPABLE) & (batch.ecn[mine] <= MARKED)
    return bool((capable & (batch.way[mine] == side)).any())


def _threshold_before(choices: Choices, sender: int, window: Ints, events: Ints, *, ecn: bool) -> None:
    """Fill in the threshold from before the capture, where anything tells it, and note what it rests on.

    CUBIC's growth tells it, or some that it may be. Losses recur at the same window where nothing else changes: so the
    threshold is assumed to be what the next loss makes it, or, of Reno and without one, half of the largest window. But
    a window that first showed with less has not grown from that, and what marks packets (ECN) does so by chance: then
    nothing is likelier than 3/4 of the window, which the kernel tells of all thresholds below (`tcp_current_ssthresh`).
    A recovery that the capture begins within ends with the threshold for its window.
    What an undone reduction made sure of is not undercut. BBR's is the bandwidth-delay product of when it left
    STARTUP, assumed to be that of now.
    """
    guessed = window[:, rw.OUT_GUESSED] != 0
    if not guessed.any():
        return
    algorithm = choices.best(sender).algorithm
    first = int(np.flatnonzero(guessed)[-1]) + 1  # after the first reduction that was not undone
    reached = int(window[guessed, rw.OUT_CWND].max())
    lost_at = int(window[first - 1, rw.OUT_CWND]) if first < len(window) else 0
    marked = bool(events[first - 1, rc.OPS] & rc.OP_CWR) if first < len(window) else ecn
    shown = window[:first][window[:first, rw.OUT_UNKNOWN] == 0, rw.OUT_CWND]
    told = likely(choices.places.get(sender, ()), lost_at, reached, marked=marked) if algorithm == wc.CUBIC else None
    if algorithm == wc.BBR:
        told = int(window[0, rw.OUT_SSTHRESH]), False
    elif events[0, rc.STATE_BEFORE] == rc.RECOVERY:
        over = np.flatnonzero(events[:first, rc.STATE_BEFORE] != rc.RECOVERY)
        showed = len(over) > 0 and (first < len(window) or len(shown) > 0)
        told = (int(window[0, rw.OUT_CWND]), True) if showed else None
    elif told is None and lost_at:
        most = int(shown[0]) if len(shown) else reached
        told = _grown_from(int(window[first, rw.OUT_SSTHRESH]), most, recurs=not marked), False
    elif told is None and algorithm == wc.RENO and len(shown):
        told = _grown_from((reached + 1) // 2, int(shown[0]), recurs=not marked), False
    threshold, fitted = told or (0, False)
    sure = window[:, rw.OUT_GUESSED] == wc.AT_LEAST
    window[guessed & ~sure, rw.OUT_SSTHRESH] = threshold
    if fitted:
        window[sure, rw.OUT_SSTHRESH] = np.maximum(window[sure, rw.OUT_SSTHRESH], threshold)
    window[guessed, rw.OUT_GUESSED] = rw.FITTED if fitted else rw.ASSUMED


def _grown_from(threshold: int, window: int, *, recurs: bool) -> int:
    """The threshold that a window had grown from, if losses recur and that may be; else 3/4 of the window."""
    return threshold if recurs and threshold <= window else window * 3 // 4
