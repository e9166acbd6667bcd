"""What the kernel's numbers say of a sender: sequence numbers unwrapped, phase, what is in flight, what limits it.

Shared by the logs that print the fields of ``struct tcp_sock`` (tcp_probe) and of ``struct tcp_info`` (ss, M-Lab).
"""

from __future__ import annotations

from dataclasses import dataclass

INFINITE_SSTHRESH = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH in include/net/tcp.h
CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")  # enum tcp_ca_state
_SEQUENCES = 1 << 32


def threshold(printed: int) -> int | None:
    """A slow-start threshold; None where it is not set (some copies of the old module print 0 for that).

    Examples
    --------
    >>> threshold(41), threshold(2147483647)
    (41, None)
    """
    return printed if 0 < printed < INFINITE_SSTHRESH else None


def unwrapped(raw: int, near: int, base: int) -> int:
    """A 32-bit sequence number as a 64-bit one relative to ``base``, nearest to the relative number ``near``.

    Examples
    --------
    >>> unwrapped(5, near=4_294_967_290, base=0)
    4294967301
    """
    return near + ((raw - base - near + (_SEQUENCES >> 1)) % _SEQUENCES) - (_SEQUENCES >> 1)


@dataclass(slots=True)
class SenderState:
    """What one socket of a tcp_probe log was last seen to be.

    Attributes
    ----------
    base
        Wire sequence number of the first snd_una logged; the others are relative to it.
    time
        Of its last line, nanoseconds.
    ca_state
        Congestion state; None: the log did not say yet.
    finite
        Whether a slow-start threshold was set at any time.
    """

    base: int
    snd_una: int = 0
    snd_nxt: int = 0
    time: int = 0
    cwnd_max: int = 0
    ca_state: str | None = None
    finite: bool = False
    thresholdless: bool = False

    def reused(self, snd_una: int, ssthresh: int | None, cwnd: int) -> bool:
        """Whether a line without a cookie belongs to a later connection with the same ports.

        snd_una never goes back, hardly passes what was sent by a gigabyte between two lines, and does not pass it at
        all as the threshold gets lost and the window falls.
        """
        una = unwrapped(snd_una, self.snd_una, self.base)
        fresh = ssthresh is None and (self.finite or cwnd < self.cwnd_max)
        return una < self.snd_una or una > self.snd_nxt + (1 << 30) or (una > self.snd_nxt and fresh)

    def advance(self, snd_una: int, snd_nxt: int, cwnd: int, ssthresh: int | None) -> None:
        """Take over the numbers of a line."""
        self.snd_una = unwrapped(snd_una, self.snd_una, self.base)
        self.snd_nxt = unwrapped(snd_nxt, self.snd_una, self.base)
        if ssthresh is not None:
            self.finite = True
        elif cwnd < self.cwnd_max:  # something reduced it, and no threshold was set
            self.thresholdless = True
        self.cwnd_max = max(self.cwnd_max, cwnd)

    def phase(self, cwnd: int, ssthresh: int | None) -> str | None:
        """Phase as the kernel's own test has it (tcp_in_slow_start); None where the line cannot tell.

        tcp_probe prints tcp_current_ssthresh(): in the states CWR and recovery snd_ssthresh itself, else the larger
        of it and 3/4 of cwnd, so that ``cwnd < ssthresh`` is true exactly in slow start. Without the state a finite
        threshold tells nothing: the window also falls below it in recovery. A congestion control that reduces its
        window and sets no threshold (BBR) has no such phases.
        """
        if self.ca_state in ("recovery", "loss"):
            return self.ca_state
        if self.thresholdless:
            return None
        if ssthresh is None:
            return "slow_start"
        if self.ca_state is None:
            return None
        return "slow_start" if cwnd < ssthresh else "congestion_avoidance"


def in_flight(unacked: int | None, sacked: int | None, lost: int | None, retrans: int | None) -> int | None:
    """Segments in flight as tcp_packets_in_flight() counts them; None where a part is unknown or makes no sense.

    Examples
    --------
    >>> in_flight(117, 0, 117, 1), in_flight(94, None, 0, 0)
    (1, None)
    """
    if unacked is None or sacked is None or lost is None or retrans is None:
        return None
    flight = unacked - sacked - lost + retrans
    return flight if flight >= 0 else None


def phase_by_window(
    cwnd: int | None, ssthresh: int | None, holes: tuple[int | None, ...], unset_from: int
) -> str | None:
    """Phase as tcp_in_slow_start() has it, where only window and threshold are known.

    Parameters
    ----------
    cwnd, ssthresh
        Segments; ssthresh is the kernel's own, None where it is not told.
    holes
        Segments SACKed, lost, resent: where one of them is not 0, or unknown, the sender may be in recovery.
    unset_from
        A threshold that is not told is at least this.

    Examples
    --------
    >>> phase_by_window(48, 41, (0, 0, 0), 65535), phase_by_window(48, None, (0, 0, 0), 65535)
    ('congestion_avoidance', 'slow_start')
    """
    if cwnd is None or any(hole is None or hole > 0 for hole in holes):
        return None
    if ssthresh is None:
        return "slow_start" if cwnd < unset_from else None
    return "slow_start" if cwnd < ssthresh else "congestion_avoidance"


def bbr_phase(pacing_gain: float, cwnd_gain: float) -> str:
    """BBR's phase by its gains (``net/ipv4/tcp_bbr.c``).

    STARTUP paces at 2.89 times the bandwidth, DRAIN at 0.34, PROBE_BW at 0.75 to 1.25 with twice the
    bandwidth-delay product as window, PROBE_RTT with no more than once.

    Examples
    --------
    >>> bbr_phase(2.88672, 2.88672), bbr_phase(1.25, 2), bbr_phase(1, 1)
    ('startup', 'probe_bw', 'probe_rtt')
    """
    if cwnd_gain <= 1:
        return "probe_rtt"
    return "startup" if pacing_gain >= 2 else "drain" if pacing_gain < 0.6 else "probe_bw"


def limited_by(
    flight: int | None,
    cwnd: int | None,
    unacked: int | None,
    mss: int | None,
    snd_wnd: int | None,
    *,
    app_limited: bool,
) -> str | None:
    """What keeps a sender from sending more; None where its numbers do not say.

    Parameters
    ----------
    flight, cwnd, unacked
        Segments.
    mss, snd_wnd
        Bytes.
    app_limited
        The kernel's flag; it tells of the last rate sample, and is void where the window is full by now.

    Examples
    --------
    >>> limited_by(10, 10, 10, 1448, 65536, app_limited=True), limited_by(4, 10, 4, 1448, 65536, app_limited=True)
    ('cwnd', 'app')
    """
    if flight is None or cwnd is None:
        return None
    if flight >= cwnd:
        return "cwnd"
    if snd_wnd is not None and mss and unacked is not None and (unacked + 1) * mss > snd_wnd:
        return "rwnd"
    return "app" if app_limited else None
