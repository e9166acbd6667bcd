"""Twin of `tracetool.kernels.sample_rows` and `rounds`: a dictionary for each ACK, None for what is not known."""

from __future__ import annotations

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw

INFINITE = 0x7FFFFFFF
BASES = ("replayed", "assumed", "fitted")
MODES = ("startup", "drain", "probe_bw", "probe_rtt")
STATES = ("open", "disorder", "cwr", "recovery", "loss")


def positive(value):
    """A number, if there is one."""
    return int(value) if value > 0 else None


def limit(before, after, mss, paced, *, shown):
    """What held the sender back after the event before: `before` is that event, `after` the window then."""
    if before is None:
        return "unknown"
    if 0 <= before[rc.ROOM] < mss:
        return "rwnd"
    if not shown:
        return "unknown"
    if after[rw.OUT_LIMITED]:
        return "cwnd"
    return "pacing" if paced else "app"


def bounds(cwnd, flight, spread, *, filled, margin, hidden, pipe):
    """Least and largest window; `hidden`: "" or why the sends do not tell it."""
    wide = int(cwnd * margin) + (not filled)
    seen = max(min(flight, cwnd), cwnd - cwnd // 10)
    least, most = min(spread[0] - wide, seen), spread[1] + wide
    if "unshown" in hidden:
        least, most = min(least, flight), None
    if "misfit" in hidden:
        least, most = min(least, pipe), None
    if most is not None and (most <= 0 or most - least > max(cwnd, 8) / 2):
        most = None
    return max(least, 1), most


def samples(events, window, low, high, mss, *, paced, bbr, sharp, fits, margin):
    """Rows of the table `samples`, without what names the flow."""
    rows = []
    for r, (e, w) in enumerate(zip(events.tolist(), window.tolist(), strict=True)):
        if e[rc.KIND] != rc.ON_ACK:
            continue
        before, after = (events[r - 1].tolist(), window[r - 1].tolist()) if r else (None, None)
        flight = before[rc.PIPE_SENT] if before else e[rc.PIPE_BEFORE]
        limited = limit(before, after, mss, paced, shown=not w[rw.OUT_UNKNOWN])
        cwnd, threshold, state = w[rw.OUT_CWND], w[rw.OUT_SSTHRESH], STATES[e[rc.STATE_BEFORE]]
        least, most = bounds(
            cwnd,
            flight,
            (int(low[r]), int(high[r])),
            filled=sharp and limited == "cwnd" and flight >= cwnd,
            margin=margin,
            hidden=("unshown " if w[rw.OUT_UNKNOWN] else "") + ("" if fits else "misfit"),
            pipe=e[rc.PIPE_BEFORE],
        )
        known = 0 < threshold < INFINITE
        growing = "slow_start" if cwnd < threshold else "congestion_avoidance"
        losing = {"loss": "loss", "recovery": "recovery", "cwr": "recovery"}
        rows.append(
            {
                "time": e[rc.TIME],
                "cwnd_segments": max(cwnd, 1),
                "cwnd_low_segments": least,
                "cwnd_high_segments": most,
                "ssthresh_segments": threshold if known else None,
                "srtt_ns": positive(e[rc.SRTT_BEFORE]),
                "rttvar_ns": positive(e[rc.RTTVAR_BEFORE]),
                "min_rtt_ns": positive(e[rc.MIN_RTT_BEFORE]),
                "inflight_bytes": max(e[rc.PIPE_BEFORE], 0) * mss,
                "mss_bytes": mss,
                "snd_una": e[rc.UNA_BEFORE],
                "snd_nxt": e[rc.NXT_BEFORE],
                "snd_wnd_bytes": e[rc.WND_BEFORE] if e[rc.WND_BEFORE] >= 0 else None,
                "pacing_rate_bps": positive(8 * after[rw.OUT_RATE]) if after else None,
                "lost_segments": e[rc.LOST_BEFORE],
                "sacked_segments": e[rc.SACKED_BEFORE],
                "retransmitted_segments": e[rc.RETRANSMITTED_BEFORE],
                "delivered_segments": e[rc.DELIVERED_BEFORE],
                "phase": MODES[w[rw.OUT_MODE]] if bbr else losing.get(state, growing),
                "limited_by": limited,
                "ca_state": state,
                "ssthresh_basis": BASES[w[rw.OUT_GUESSED]] if known else None,
            }
        )
    return rows


def rounds(una, nxt, first, end, most):
    """Round trips from one event to another: a new one where all that was sent at the start of the last is acked."""
    count, start = 1, first
    while count < most:
        over = [r for r in range(start + 1, end + 1) if max(una[first : r + 1]) >= nxt[start]]
        if not over:
            break
        count, start = count + 1, over[0]
    return count
