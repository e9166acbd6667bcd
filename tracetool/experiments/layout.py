"""Where an experiment's runs are, and what tells them apart: the levels of its folders."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracetool import parsers, sources
from tracetool.errors import InputError, UsageError
from tracetool.experiments.setting import (
    MANIFEST,
    Manifest,
    Setting,
    duration_ns,
    read_manifest,
    updated,
    with_scenario,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Where captures are taken, and the words in a file's name that say so; before and after stand right at the queue.
SIDES = {
    "before": {"before", "ingress", "in"},
    "after": {"after", "egress", "out"},
    "sender": {"sender", "snd", "src", "client"},
    "receiver": {"receiver", "rcv", "dst", "server"},
}
CAPTURES = ("pcap", "pcapng")
COUNTERS = ("tc_qdisc",)
MAX_FOLDERS = 100_000
#: Columns of the long table: a level of such a name would hide one.
RESERVED = frozenset({"table", "scale", "repetition", "value", "n", "label", "reason", "censored_at"})
_PREFIXED = re.compile(r"([A-Za-z]+)[-_=](\d.*)")
_SHARE = re.compile(r"\d+(?:\.\d+)?(?:%|pct)")
_SPEED = re.compile(r"\d+(?:\.\d+)?[kmgKMG]?bit")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an experiment.

    Parameters
    ----------
    levels
        Name and value of each level, outermost first, without the repetition.
    repetition
        Which repetition of these levels it is.
    name
        Its path below the experiment, for people.
    captures
        Files by place: one of `SIDES`, or ``capture`` where it is unknown.
    counters
        Logs of router counters.
    setting
        What is declared of it.
    """

    levels: tuple[tuple[str, str], ...]
    repetition: str
    name: str
    captures: tuple[tuple[str, str], ...]
    counters: tuple[str, ...]
    setting: Setting


@dataclass(frozen=True, slots=True)
class Layout:
    """An experiment's runs and what is declared of all of them."""

    root: str
    manifest: Manifest
    runs: tuple[Run, ...]


def is_experiment(path: str | Path) -> bool:
    """Say whether a path is a manifest, or a folder of folders that is no dataset.

    Examples
    --------
    >>> is_experiment("no/such/folder"), is_experiment("a name that no system takes" * 1000)
    (False, False)
    """
    place = Path(path)
    try:
        if place.name == MANIFEST:
            return place.is_file()
        if not place.is_dir() or (place / "dataset.json").exists():
            return False
        return (place / MANIFEST).is_file() or any(entry.is_dir() for entry in place.iterdir())
    except OSError:  # whoever opens it will say what is wrong
        return False


def layout(path: str | Path, *, levels: Sequence[str] = (), setting: Setting | None = None) -> Layout:
    """Find the runs of an experiment.

    Parameters
    ----------
    path
        A folder, or an ``experiment.toml``.
    levels
        Names of the folder levels, outermost first, ``repetition`` included if there is one; guessed where not given.
    setting
        Declared by the caller; goes before what the files declare.

    Raises
    ------
    InputError
        There is no run, or a file cannot be read.
    UsageError
        The names do not fit the folders.
    """
    place = Path(path)
    root = place.parent if place.name == MANIFEST else place
    manifest = read_manifest(root / MANIFEST) if (root / MANIFEST).is_file() else Manifest()
    base = _merged(setting or Setting(), manifest.setting)
    if manifest.runs:
        return Layout(str(root), manifest, tuple(_named(root, raw, base) for raw in manifest.runs))
    folders = [Path(folder) for folder, names in _walk(root) if names]
    found = [(folder, *_evidence(folder)) for folder in folders]
    found = [entry for entry in found if entry[1]]
    if not found:
        raise InputError(f"{root}: no run there: expected folders with captures, such as 16ms/cubic/1")
    parts = [folder.relative_to(root).parts for folder, *_ in found]
    named = name_levels(parts, levels or manifest.levels)
    runs = []
    for (folder, captures, counters), (values, repetition) in zip(found, named, strict=True):
        own = with_scenario(base, folder)
        runs.append(Run(values, repetition, str(folder.relative_to(root)), captures, counters, own))
    return Layout(str(root), manifest, tuple(runs))


def name_levels(
    parts: Sequence[tuple[str, ...]], names: Sequence[str] = ()
) -> list[tuple[tuple[tuple[str, str], ...], str]]:
    """Name the levels of runs' paths and split off the repetition.

    Parameters
    ----------
    parts
        The folders of each run below the experiment.
    names
        The names, if known; else ``delay-60ms`` names its level itself, a duration is a delay, a percentage a loss,
        a bit rate a rate, a number at the end a repetition, and the first other level the protocol.

    Examples
    --------
    >>> name_levels([("16ms", "cubic", "1")])
    [((('delay', '16ms'), ('protocol', 'cubic')), '1')]
    """
    if names and any(len(path) != len(names) for path in parts):
        odd = next(path for path in parts if len(path) != len(names))
        raise UsageError(f"{'/'.join(odd)}: {len(odd)} levels: expected {len(names)} ({', '.join(names)})")
    numbered = not names and all(path and _NUMBER.fullmatch(path[-1]) for path in parts)
    result = []
    for path in parts:
        levels: dict[str, str] = {}
        repetition = "1"
        for depth, part in enumerate(path):
            if (names and names[depth] == "repetition") or (numbered and depth == len(path) - 1):
                repetition = part
                continue
            name, value = (names[depth], part) if names else _guess(part)
            if name in levels or not name:
                name = "protocol" if "protocol" not in levels else f"level{depth + 1}"
            levels[f"{name}_level" if name in RESERVED else name] = value
        result.append((tuple(levels.items()), repetition))
    return result


def _guess(part: str) -> tuple[str, str]:
    """Return what a folder's name says of its level: name (or nothing) and value."""
    if found := _PREFIXED.fullmatch(part):
        return found[1].lower(), found[2]
    if duration_ns(part) is not None:
        return "delay", part
    if _SHARE.fullmatch(part):
        return "loss", part
    return ("rate" if _SPEED.fullmatch(part) else ""), part


def sort_key(value: str) -> tuple[int, float, str]:
    """Sort values of a level: durations and numbers by size, then words.

    Examples
    --------
    >>> sorted(["162ms", "16ms", "cubic"], key=sort_key)
    ['16ms', '162ms', 'cubic']
    """
    duration = duration_ns(value)
    if duration is not None:
        return (0, float(duration), value)
    found = _NUMBER.match(value)
    return (0, float(found[0]), value) if found else (1, 0.0, value)


def _walk(root: Path) -> list[tuple[str, list[str]]]:
    """Return the folders with their files, in a fixed order, hidden ones left out."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found.append((folder, sorted(files)))
        if len(found) > MAX_FOLDERS:
            raise InputError(f"{root}: more than {MAX_FOLDERS} folders: expected an experiment")
    return sorted(found, key=lambda entry: [sort_key(part) for part in Path(entry[0]).parts])


def _evidence(folder: Path) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return a folder's captures by side, and its logs of router counters."""
    kinds = {path: _format(path) for path in sorted(folder.iterdir()) if path.is_file()}
    captures = [path for path, kind in kinds.items() if kind in CAPTURES]
    counters = tuple(str(path) for path, kind in kinds.items() if kind in COUNTERS)
    return tuple((side(path.name), str(path)) for path in captures), counters


def side(name: str) -> str:
    """Return where a capture was taken, by its file name: one of `SIDES`, or just capture.

    Examples
    --------
    >>> side("sender.pcap.gz"), side("bottleneck-out.pcap"), side("a.pcap")
    ('sender', 'after', 'capture')
    """
    words = set(re.split(r"[^a-z]+", name.lower()))
    return next((where for where, known in SIDES.items() if words & known), "capture")


def _format(path: Path) -> str | None:
    """Return the format of a file if it is a capture or a log of counters."""
    try:
        (source,) = sources.expand(str(path))
        with source.open() as stream:
            head = stream.head()
    except (OSError, ValueError):
        return None
    return next(
        (name for name in (*CAPTURES, *COUNTERS) if name in parsers.FORMATS and parsers.get(name).sniff(head)), None
    )


def _named(root: Path, raw: dict[str, Any], base: Setting) -> Run:
    """Return a run that the manifest names."""
    keys = {"path", "captures", "counters", "repetition", "rate", "layer", "rtt", "queue_bytes", "flows", "background"}
    levels = tuple((str(key), str(value)) for key, value in raw.items() if key not in keys | {"roles"} | RESERVED)
    captures: tuple[tuple[str, str], ...] = ()
    counters: tuple[str, ...] = ()
    setting = base
    if "path" in raw:
        folder = root / str(raw["path"])
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder: run {raw['path']!r} of {MANIFEST}")
        captures, counters = _evidence(folder)
        setting = with_scenario(base, folder)
    if isinstance(raw.get("captures"), dict):
        captures = tuple((str(where), str(root / str(name))) for where, name in raw["captures"].items())
    counters += tuple(str(root / str(name)) for name in raw.get("counters", ()))
    if not captures:
        raise InputError(f'{root / MANIFEST}: a run without captures: expected path, or captures = {{sender = "…"}}')
    repetition = str(raw.get("repetition", 1))
    name = str(raw.get("path") or "/".join([*(value for _, value in levels), repetition]))
    return Run(levels, repetition, name, captures, counters, updated(setting, raw, f"{root / MANIFEST}: run {name}"))


def _merged(first: Setting, second: Setting) -> Setting:
    """Return the first setting completed by the second."""
    return Setting(
        first.rate_bps or second.rate_bps,
        first.layer if first.rate_bps else second.layer,
        first.queue_bytes or second.queue_bytes,
        first.rtt_ns or second.rtt_ns,
        first.flows or second.flows,
        second.background if first.background is None else first.background,
        first.ports or second.ports,
    )
