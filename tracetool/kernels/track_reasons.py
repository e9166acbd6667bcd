"""Why a sender sent something again: the rules of `kernels.track`, on the state that it keeps."""

from __future__ import annotations

from tracetool.kernels._jit import kernel

# What made the sender send again.
NO_TRIGGER, FAST, RTO, TLP, UNKNOWN = range(5)
# Why we say so; `reconstruct.events` has the words.
(
    NO_EVIDENCE, BY_HANDSHAKE, BY_SACK, BY_DUPLICATE_ACKS, IN_RECOVERY, BY_SILENCE, AFTER_TIMEOUT, BY_PROBE_TIME,
    FILLS_HOLE_IP_ID, FILLS_HOLE_TSVAL, FILLS_HOLE_TIME, BY_DSACK, BY_EIFEL, BY_ECHO, WAS_SACKED, WAS_ACKED,
    NO_REASON,
) = range(17)  # fmt: skip

MS = 1_000_000
RTO_LEAST = 200 * MS  # Linux, TCP_RTO_MIN
RTO_FIRST = 1000 * MS  # RFC 6298
SYN = 2
HALF_ID, HALF_TICK = 1 << 15, 1 << 31
#: Reordering on a path is a matter of less; Wireshark takes the same where it has no RTT.
REORDERING = 3 * MS
#: A capture may hold an ACK before the data it acknowledges, where two queues of one interface are read in turn.
QUEUES = 1 * MS


@kernel
def is_late(step: int, tick: int, waited: int, round_trip: int) -> tuple[bool, int]:
    """Tell whether what fills a hole was sent before what follows it (late), or after (sent again).

    Parameters
    ----------
    step, tick
        How far its IP identification, and its timestamp, are ahead of those of what follows the hole, modulo 2^16 and
        2^32; 0 where unknown or equal.
    waited
        How long the hole was open, nanoseconds.
    round_trip
        Shortest round trip, nanoseconds; 0 unknown. Nothing can be sent again sooner.

    Returns
    -------
    tuple
        Whether it was late, and the evidence.
    """
    if step != 0:
        return step >= HALF_ID, FILLS_HOLE_IP_ID
    if tick != 0:
        return tick >= HALF_TICK, FILLS_HOLE_TSVAL
    return waited < (max(round_trip, QUEUES) if round_trip > 0 else REORDERING), FILLS_HOLE_TIME


@kernel
def timeout(srtt: int, rttvar: int, backoff: int, behind: int) -> int:
    """Retransmission timeout (RFC 6298, with Linux' least value), nanoseconds."""
    return RTO_FIRST if srtt == 0 else (srtt + behind + max(4 * rttvar, RTO_LEAST)) * backoff


@kernel
def why(
    flags: int, una: int, nxt: int, below: int, at_head: bool, sack_ok: bool, sacked_to: int, duplicates: int,
    recovery_to: int, loss_to: int, probed: bool, quiet: int, expired: bool, least: int,
) -> tuple[int, int]:  # fmt: skip
    """Name what made the sender send again, in the order in which Linux would see it.

    A fast retransmission needs evidence that later data arrived (RFC 6675, RFC 8985); a timeout needs silence; a probe
    (RFC 8985, section 7) is the end of what was sent, with nothing lost before it, once.

    Parameters
    ----------
    flags, below, at_head
        TCP flags of the packet, the end of what it repeats, and whether it begins with the lowest byte outstanding.
    una, nxt, sack_ok, sacked_to, duplicates, recovery_to, loss_to, probed
        State of the sender: see `kernels.track`.
    quiet, expired, least
        Time since the timer was started, whether that is a timeout, and the shortest timeout there could be.

    Returns
    -------
    tuple
        Trigger and evidence.
    """
    if flags & SYN:
        return RTO, BY_HANDSHAKE
    if not expired:
        if una < loss_to:
            return RTO, AFTER_TIMEOUT
        if sacked_to > below:
            return FAST, BY_SACK
        if una < recovery_to:
            return FAST, IN_RECOVERY
        if duplicates > 0:
            return FAST, BY_DUPLICATE_ACKS
    calm = una >= recovery_to and (not at_head or sacked_to <= una)
    if below >= nxt and sack_ok and not probed and calm:
        return TLP, BY_PROBE_TIME
    if at_head and (expired or quiet >= least):
        return RTO, BY_SILENCE
    return UNKNOWN, NO_REASON
