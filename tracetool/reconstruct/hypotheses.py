"""Which congestion control senders ran: every hypothesis replays the window, and the sends judge it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_choice as choice
from tracetool.kernels import window_columns as wc
from tracetool.kernels import window_fit
from tracetool.reconstruct.memory import empty
from tracetool.reconstruct.models import Hypothesis, hypotheses, reno
from tracetool.reconstruct.remembered import remembered
from tracetool.reconstruct.under_way import Place, distinct, grows_as_reno, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.replayed import Replayed

    Ints = npt.NDArray[np.int64]

#: Segments; Linux since 2.6.39 (RFC 6928).
INITIAL_WINDOW = 10


@dataclass(frozen=True, slots=True)
class Choices:
    """The hypotheses chosen for some senders.

    Parameters
    ----------
    hypotheses : list of Hypothesis
        All that were tried, of any of them.
    table : int64, shape (hypotheses, HYPOTHESIS_WIDTH)
        The same for the kernels.
    window : int64, shape (events, OUT_WIDTH)
        The window under the hypothesis chosen for each sender, in the order of their events.
    low, high : int64, shape (events,)
        Least and largest window as each event arrives, segments, of all that fit as well as the chosen one.
    choice : int64, shape (senders, CHOICE_WIDTH), told : float64, shape (senders, TOLD_WIDTH)
        See `tracetool.kernels.window_choice`.
    places : mapping of int to tuple of Place
        Of senders whose capture began in mid-connection: where CUBIC may have stood then, the likeliest first.
    """

    hypotheses: list[Hypothesis]
    table: Ints
    window: Ints
    low: Ints
    high: Ints
    choice: Ints
    told: npt.NDArray[np.float64]
    places: dict[int, tuple[Place, ...]] = field(default_factory=dict)

    def best(self, sender: int) -> Hypothesis:
        """Return the hypothesis chosen for a sender."""
        return self.hypotheses[int(self.choice[sender, choice.BEST])]

    def cc(self, sender: int) -> tuple[str | None, float | None]:
        """Return the congestion control, and how sure it is; `unknown` where nothing fits, None with too little data.

        The confidence, 0 to 1, is how much worse the best hypothesis of another congestion control fits.
        """
        said = self.choice[sender, choice.SAID]
        if said == choice.TOO_LITTLE:
            return None, None
        if said == choice.NOTHING_FITS:
            return "unknown", 0.0
        if said == choice.HIDDEN:
            return self.best(sender).cc, 0.0
        sure = float(self.told[sender, choice.TOLD_CONFIDENCE])
        return self.best(sender).cc, round(min(max(sure, 0.0), 1.0), 3)

    def cause_confidence(self, sender: int) -> float:
        """Return how sure the causes of exits are.

        That is the part of those that fit as well and see the same one, less the misfit; 0 where departures are hidden.
        """
        if self.choice[sender, choice.SAID] == choice.HIDDEN:
            return 0.0
        _, missed, agreed, _ = map(float, self.told[sender])
        return round(agreed * max(0.0, 1 - missed / choice.UNEXPLAINED), 3)


def choose(replayed: Replayed, tolerance: Ints, hidden: npt.NDArray[np.bool_] | None = None) -> Choices:
    """Try the hypotheses on the events of senders, and take for each the one that explains its sends best.

    Where nobody saw when its data left, every sender seems to pace at the rate of the bottleneck: BBR, which does, fits
    them all and is not tried. Another is named where it fits as well as BBR would.

    Parameters
    ----------
    replayed : Replayed
        The senders.
    tolerance : int64, shape (senders,)
        Segments by which the flight of each may be wrong, where it was not seen at the sender.
    hidden : bool, shape (senders,), optional
        Whose departures can only be guessed: by default nobody's.

    Returns
    -------
    Choices
    """
    events, at = replayed.events, replayed.at
    senders = len(at) - 1
    begun, late = _usual_first(hypotheses(begun=True)), hypotheses(begun=False)
    every = [*begun, *_usual_first(late)]
    first = np.where(replayed.begun, 0, len(begun))
    beyond = np.where(replayed.begun, len(begun), len(every))
    hidden = np.zeros(senders, np.bool_) if hidden is None else hidden
    if (hidden & replayed.begun).any():
        first[hidden & replayed.begun] = len(every)
        every += [hypothesis for hypothesis in begun if hypothesis.algorithm != wc.BBR]
        beyond[hidden & replayed.begun] = len(every)
    window = empty((len(events), rw.OUT_WIDTH))
    found: dict[int, tuple[Place, ...]] = {}
    for sender in np.flatnonzero(~replayed.begun).tolist():
        mine = slice(at[sender], at[sender + 1])
        if window_fit.sends(events[mine]) >= choice.TOO_FEW:
            first[sender] = len(every)
            mss = int(replayed.mss[sender])
            found[sender] = places(events[mine], mss, window[mine])
            some = (*distinct(found[sender]), *late)
            if grows_as_reno(events[mine], mss, found[sender], window[mine]):
                some = (*reno.UNDER_WAY, *some)
            every += _usual_first(tuple(dict.fromkeys(some)))
            beyond[sender] = len(every)
    made = Choices(
        every,
        np.array([hypothesis.numbers(0, INITIAL_WINDOW) for hypothesis in every]),
        window,
        np.empty(len(events), np.int64),
        np.empty(len(events), np.int64),
        np.empty((senders, choice.CHOICE_WIDTH), np.int64),
        np.empty((senders, choice.TOLD_WIDTH)),
        found,
    )
    choice.choose_all(
        events,
        at,
        replayed.mss,
        tolerance,
        replayed.begun.view(np.uint8),
        made.table,
        np.array([hypothesis.rare for hypothesis in every], np.uint8),
        first,
        beyond,
        made.window,
        made.low,
        made.high,
        made.choice,
        made.told,
    )
    _hide(made, hidden)
    for sender in found:
        if made.best(sender).algorithm == wc.BBR:
            mine = slice(at[sender], at[sender + 1])
            _remember(made, sender, mine, events[mine], int(replayed.mss[sender]), int(tolerance[sender]))
    more = [hypothesis.numbers(0, INITIAL_WINDOW) for hypothesis in every[len(made.table) :]]
    return replace(made, table=np.concatenate([made.table, more])) if more else made


def _hide(made: Choices, hidden: npt.NDArray[np.bool_]) -> None:
    """Of senders whose departures are hidden nothing is said but what beats BBR, which fits any of them."""
    bbr = made.table[made.choice[:, choice.BEST], wc.CC] == wc.BBR
    fits = ~bbr & (made.told[:, choice.TOLD_MISFIT] <= window_fit.LOOSENESS / 2)
    named = hidden & (made.choice[:, choice.SAID] != choice.TOO_LITTLE)
    made.choice[named, choice.SAID] = np.where(fits[named], choice.HIDDEN, choice.NOTHING_FITS)


def _remember(made: Choices, sender: int, mine: slice, events: Ints, mss: int, tolerance: int) -> None:
    """Replace BBR under way by that whose smallest RTT from before the capture fits best, unless it was starting up."""
    told = remembered(events, mss, tolerance)
    if not told:
        return
    replay = partial(_replay, events, mss, tolerance)
    other = empty((len(events), rw.OUT_WIDTH))
    missed = replay(told[0], other)
    if made.best(sender).start != wc.PAST_SLOW_START and replay(made.best(sender), other[:0]) < missed:
        return
    made.choice[sender, choice.BEST] = len(made.hypotheses)
    made.hypotheses.append(told[0])
    made.window[mine] = other
    made.low[mine] = made.high[mine] = other[:, rw.OUT_CWND]
    for one in told[1:]:
        replay(one, other)
        np.minimum(made.low[mine], other[:, rw.OUT_CWND], out=made.low[mine])
        np.maximum(made.high[mine], other[:, rw.OUT_CWND], out=made.high[mine])


def _replay(events: Ints, mss: int, tolerance: int, hypothesis: Hypothesis, out: Ints) -> float:
    """Replay the window of one hypothesis into `out`, if that has rows; returns the segments that it misses."""
    found = np.empty(window_fit.FIT_WIDTH)
    numbers = hypothesis.numbers(mss, INITIAL_WINDOW, tolerance)
    window_fit.fit(events, numbers, np.empty(wc.WINDOW_WIDTH, np.int64), out, window_fit.NO_LIMIT, 0, found)
    return float(found[window_fit.MISSED])


def _usual_first(some: Sequence[Hypothesis]) -> list[Hypothesis]:
    return sorted(some, key=lambda hypothesis: hypothesis.rare)
