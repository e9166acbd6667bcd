"""What is declared of an experiment: its bottleneck, its runs' parameters, who plays which role.

Read from ``experiment.toml`` at the top, and from a ``scenario.json`` beside a run's captures (the description that the
lab scripts write: ``rate_mbit``, ``queue_bytes``, ``rtt_ms``, ``loss``, ``flows``).
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracetool.errors import InputError, UsageError
from tracetool.metrics.bins import LAYERS

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "experiment.toml"
SCENARIO = "scenario.json"
MAX_BYTES = 4 << 20
MAX_RATE_BPS = 10**18
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:bit(?:/s|ps)?|bps|b/s)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|sec)", re.IGNORECASE)
_SECONDS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9}


def rate_bps(text: str | float) -> int:
    """Read a rate such as ``8mbit``, ``1Gbit/s`` or a number of bit/s.

    Raises
    ------
    UsageError
        It is no rate.

    Examples
    --------
    >>> rate_bps("8mbit"), rate_bps("1.5Gbit/s")
    (8000000, 1500000000)
    """
    if isinstance(text, int | float) and not isinstance(text, bool) and 0 < text < MAX_RATE_BPS:
        return round(text)
    found = _RATE.fullmatch(str(text).strip())
    if found is None or not 0 < float(found[1]) * _UNITS[found[2].lower()] < MAX_RATE_BPS:
        raise UsageError(f"rate {text!r}: expected a number with a unit, such as 8mbit or 1Gbit/s")
    return round(float(found[1]) * _UNITS[found[2].lower()])


def duration_ns(text: str) -> int | None:
    """Read a duration such as ``16ms`` or ``5sec``; ``None`` if it is none.

    Examples
    --------
    >>> duration_ns("16ms"), duration_ns("cubic")
    (16000000, None)
    """
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else round(float(found[1]) * _SECONDS_NS[found[2].lower()])


@dataclass(frozen=True, slots=True)
class Setting:
    """What is declared of a run or of all runs; null is not declared.

    Parameters
    ----------
    rate_bps, layer
        The bottleneck's rate, and the layer whose bytes it counts.
    queue_bytes
        Its queue.
    rtt_ns
        The base round-trip time.
    flows
        How many flows compete.
    background
        Whether there is traffic that the captures do not show.
    ports
        Receiver ports of the competing flows, with their roles.
    """

    rate_bps: int | None = None
    layer: str = "frame"
    queue_bytes: int | None = None
    rtt_ns: int | None = None
    flows: int | None = None
    background: bool | None = None
    ports: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An ``experiment.toml``.

    Parameters
    ----------
    title, lines
        The heading, and the lines of the printed setting.
    setting
        Of all runs that do not say otherwise.
    levels
        Names of the folder levels.
    order
        The values of a level in the order of the tables.
    runs
        Runs that are named one by one (``path`` or ``captures``, ``counters``, and values of levels).
    """

    title: str | None = None
    lines: tuple[str, ...] = ()
    setting: Setting = Setting()
    levels: tuple[str, ...] = ()
    order: dict[str, list[str]] = field(default_factory=dict)
    runs: tuple[dict[str, Any], ...] = ()


def read_manifest(path: Path) -> Manifest:
    """Read an ``experiment.toml``.

    Raises
    ------
    InputError
        It cannot be read, or is no TOML.
    UsageError
        A value makes no sense.
    """
    try:
        raw = tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}: expected TOML") from None
    known = {"title", "setting", "bottleneck", "levels", "order", "run"}
    if unknown := set(raw) - known:
        raise UsageError(f"{path}: unknown {', '.join(sorted(unknown))}: expected {', '.join(sorted(known))}")
    lines = tuple(f"{key}: {value}" for key, value in raw.get("setting", {}).items())
    return Manifest(
        raw.get("title"),
        lines,
        updated(Setting(), raw.get("bottleneck", {}), str(path)),
        tuple(raw.get("levels", ())),
        {name: [str(value) for value in values] for name, values in raw.get("order", {}).items()},
        tuple(raw.get("run", ())),
    )


def updated(setting: Setting, raw: dict[str, Any], where: str) -> Setting:
    """Return a setting with what a table of the manifest says.

    Raises
    ------
    UsageError
        A value makes no sense.
    """
    changes: dict[str, Any] = {}
    if "rate" in raw:
        changes["rate_bps"] = rate_bps(raw["rate"])
    if "layer" in raw:
        if raw["layer"] not in LAYERS:
            raise UsageError(f"{where}: layer {raw['layer']!r}: expected one of {', '.join(LAYERS)}")
        changes["layer"] = raw["layer"]
    if "rtt" in raw:
        changes["rtt_ns"] = duration_ns(str(raw["rtt"]))
    if "roles" in raw:
        try:
            changes["ports"] = {int(port): role for role, port in raw["roles"].items()}
        except (ValueError, TypeError, AttributeError):
            raise UsageError(f"{where}: roles: expected names of flows with their receiver ports") from None
    for name, kind in (("queue_bytes", int), ("flows", int), ("background", bool)):
        if name in raw:
            if not isinstance(raw[name], kind):
                raise UsageError(f"{where}: {name} = {raw[name]!r}: expected {kind.__name__}")
            changes[name] = raw[name]
    return replace(setting, **changes)


def with_scenario(setting: Setting, folder: Path) -> Setting:
    """Return a setting completed by the ``scenario.json`` of a run's folder; what is declared already stays.

    Raises
    ------
    InputError
        The file is there, but no JSON.
    """
    path = folder / SCENARIO
    if not path.is_file():
        return setting
    try:
        raw = json.loads(_text(path))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}: expected JSON") from None
    if not isinstance(raw, dict):
        raise InputError(f"{path}: expected a JSON object")
    rate, rtt, flows = _number(raw.get("rate_mbit")), _number(raw.get("rtt_ms")), raw.get("flows")
    queue = raw.get("queue_bytes_used", raw.get("queue_bytes"))
    return replace(
        setting,
        rate_bps=setting.rate_bps or (None if rate is None else round(rate * 10**6)),
        queue_bytes=setting.queue_bytes or (queue if _number(queue) and isinstance(queue, int) else None),
        rtt_ns=setting.rtt_ns or (None if rtt is None else round(rtt * 10**6)),
        flows=setting.flows or (len(flows) if isinstance(flows, list) else None),
    )


def _number(value: object) -> float | None:
    """Return a number that can be a rate, a time or a size; anything else says nothing."""
    plain = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_RATE_BPS
    return value if plain else None  # type: ignore[return-value]


def _text(path: Path) -> str:
    """Read a small text file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: {path.stat().st_size} bytes: expected a description of at most {MAX_BYTES}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: {error.strerror}") from None
