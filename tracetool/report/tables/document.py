"""A printed page as data: headings, lines and tables whose cells may link to runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A ``[1]`` behind a cell's value: its text, and which run it stands for."""

    text: str
    run: int


@dataclass(frozen=True, slots=True)
class Text:
    """A cell: its value as text, links to its repetitions, and what follows them."""

    value: str
    links: tuple[Link, ...] = ()
    after: str = ""

    def __str__(self) -> str:
        return " ".join([self.value, *(f"[{link.text}]" for link in self.links), *([self.after] if self.after else [])])


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the page's title."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """A paragraph of lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first ``left`` columns name the rows, the others hold numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    left: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row of {len(row)} cells under {len(self.header)} headings")


@dataclass(frozen=True, slots=True)
class RunPage:
    """What a run's own page shows: its name, a grid of its flows, a grid of its numbers, and notes."""

    run: int
    name: str
    blocks: tuple[Heading | Lines | Grid, ...]


Block = Heading | Lines | Grid


@dataclass(frozen=True, slots=True)
class Document:
    """A page, and the pages of the runs it links to."""

    blocks: tuple[Block, ...]
    runs: tuple[RunPage, ...] = ()
