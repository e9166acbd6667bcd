"""Text from data made fit to show: no control characters, no escapes, no surprises in width.

Names in captures and logs are written by strangers. A terminal obeys escape sequences and bidirectional overrides, so
whatever is not printable is replaced before it is shown.
"""

from __future__ import annotations

import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WIDE = frozenset({"W", "F"})
MAX_TEXT = 400
"""Longest piece of text taken from data, in characters."""


def printable(text: str, *, limit: int = MAX_TEXT) -> str:
    """Return `text` with every control, format, surrogate and unassigned character replaced by ``?``, cut to `limit`.

    Examples
    --------
    >>> printable("a\\x1b[31mb\\n")
    'a?[31mb?'
    """
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    if text.isascii() and text.isprintable():
        return text
    return "".join(_safe(char) for char in text)


def _safe(char: str) -> str:
    category = unicodedata.category(char)
    return "?" if category in _UNSAFE else " " if category == "Zs" else char


def ascii_only(text: str, *, limit: int = MAX_TEXT) -> str:
    """Return `text` in 7-bit printable characters; accents are dropped, anything else becomes ``?``.

    Examples
    --------
    >>> ascii_only("d\\u00e9lai \\u2192 5")
    'delai ? 5'
    """
    plain = unicodedata.normalize("NFKD", printable(text, limit=limit))
    return "".join(char if char.isascii() else "?" for char in plain if not unicodedata.combining(char))


def display_width(text: str) -> int:
    """Return how many terminal cells `text` takes: wide East Asian characters take two, combining marks none.

    Examples
    --------
    >>> display_width("ab"), display_width("\\u6f22")
    (2, 2)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in _WIDE else 1 for char in text
    )


def wrap(text: str, width: int) -> list[str]:
    """Return `text` broken at spaces into lines of at most `width` cells; longer words are cut.

    Examples
    --------
    >>> wrap("one two three", 8)
    ['one two', 'three']
    """
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        while display_width(word) > width:
            taken = clip(word, width)
            lines += [current, taken] if current else [taken]
            current, word = "", word[len(taken) :]
        joined = f"{current} {word}" if current else word
        if display_width(joined) <= width:
            current = joined
        else:
            lines.append(current)
            current = word
    return [*lines, current] if current else lines


def clip(text: str, width: int) -> str:
    """Return the beginning of `text` that fits into `width` cells (one character at least).

    Examples
    --------
    >>> clip("abc", 2)
    'ab'
    """
    end = len(text)
    while end > 1 and display_width(text[:end]) > width:
        end -= 1
    return text[:end]
