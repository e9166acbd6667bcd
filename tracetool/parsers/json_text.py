"""JSON documents read piece by piece: large arrays and objects are entered, their members decoded one by one.

Memory is bounded by the largest member, and a document that ends early or breaks in the middle gives what came before.
NaN and infinities, which some writers put where JSON has no word for them, are null.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracetool.sources import Stream

MEMBER_CHARS = 1 << 26  # a member longer than this is refused
READ_BYTES = 1 << 16
DEPTH = 8  # how deep members are entered
Path = tuple[str, ...]
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
#: What stands behind a number, up to the end of the text, if that may go on.
_NUMBER_CUT = frozenset({"", ".", "e", "E", "e+", "e-", "E+", "E-"})
_BLANK = re.compile(r"[ \t\r\n\x1e]*")


class JsonDamageError(ValueError):
    """A document that breaks off, or is none; tells where.

    Attributes
    ----------
    offset_bytes
        Byte offset of the member that cannot be read.
    """

    def __init__(self, message: str, offset_bytes: int) -> None:
        super().__init__(message)
        self.offset_bytes = offset_bytes


def number(value: Any, factor: float = 1) -> int | None:
    """A JSON number times a factor, rounded; None where it is none, negative or does not fit 64 bits.

    Examples
    --------
    >>> number(1.5, 1000), number(None), number(-1), number("7"), number(True)
    (1500, None, None, 7, None)
    """
    if isinstance(value, str):
        try:
            value = float(value) if not value.isdecimal() else int(value[:20])
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value * factor < 1 << 63:
        return None
    return round(value * factor)


def members(stream: IO[bytes] | Stream, enter: Collection[Path]) -> Iterator[tuple[Path, Any]]:
    """Members of a document, or of several one after the other, as they come.

    Parameters
    ----------
    stream
        UTF-8 text.
    enter
        Paths of objects and arrays to be entered rather than decoded as a whole; ``*`` stands for any key, and for
        the members of an array. ``()`` is the document.

    Yields
    ------
    tuple of path and value
        The path has the keys as they are, ``*`` for a member of an array. After each document comes ``((), None)``,
        after each object or array that was entered its path with None.

    Raises
    ------
    JsonDamageError
        Where the text is no JSON, ends early, or has a member of more than `MEMBER_CHARS`.

    Examples
    --------
    >>> import io
    >>> list(members(io.BytesIO(b'{"a": [1, {"b": 2}], "c": 3}'), [(), ("a",)]))
    [(('a', '*'), 1), (('a', '*'), {'b': 2}), (('a',), None), (('c',), 3), ((), None)]
    """
    text = _Text(stream)
    while text.peek():
        yield from _value(text, (), {path for path in enter if len(path) < DEPTH})


def _value(text: _Text, path: Path, enter: set[Path]) -> Iterator[tuple[Path, Any]]:
    opening = text.peek()
    if opening not in ("{", "[") or not _entered(path, enter):
        yield path, text.decode(inside=bool(path))
        return
    text.take()
    closing = {"{": "}", "[": "]"}[opening]
    first = True
    while text.peek() != closing:
        if not first:
            text.expect(",")
        first = False
        key = "*"
        if opening == "{":
            key = text.decode(inside=True)
            if not isinstance(key, str):
                raise text.damage("a key that is no text")
            text.expect(":")
        yield from _value(text, (*path, key), enter)
    text.take()
    yield path, None


def _entered(path: Path, enter: set[Path]) -> bool:
    return any(
        len(wanted) == len(path) and all(w in ("*", p) for w, p in zip(wanted, path, strict=True)) for wanted in enter
    )


class _Text:
    """The text from the current place on, as much of it as was needed."""

    def __init__(self, stream: IO[bytes] | Stream) -> None:
        self._stream = cast("IO[bytes]", stream)
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._at = 0
        self._before = 0  # bytes before the text held
        self._ended = False

    def _more(self, wanted: int = READ_BYTES) -> bool:
        """Read on; drop what was passed. False at the end."""
        if self._ended:
            return False
        passed, self._text, self._at = self._text[: self._at], self._text[self._at :], 0
        self._before += len(passed.encode("utf-8", "replace"))
        parts = [self._text]
        while wanted > 0 and not self._ended:
            raw = self._stream.read(READ_BYTES)
            self._ended = not raw
            parts.append(self._utf8.decode(raw or b"", final=self._ended))
            wanted -= len(raw or b"")
        self._text = "".join(parts)
        return True

    def damage(self, message: str) -> JsonDamageError:
        """What is wrong at the current place."""
        return JsonDamageError(message, self._before + len(self._text[: self._at].encode("utf-8", "replace")))

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def take(self) -> None:
        """Pass the character peeked at."""
        self._at += 1

    def expect(self, mark: str) -> None:
        """Pass a punctuation mark."""
        found = self.peek()
        if found != mark:
            raise self.damage(f"{mark!r} is missing" if found else "the text ends early")
        self.take()

    def decode(self, *, inside: bool) -> Any:
        """Pass a value and return it; a number inside of another value has something behind it, if it is whole."""
        if not self.peek():
            raise self.damage("the text ends early")
        problem = ""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise self.damage("values are nested too deeply") from None
            except ValueError as error:
                reason = getattr(error, "msg", "a number that cannot be")
                at = getattr(error, "pos", 0)
                open_end = "Unterminated" in reason or at >= len(self._text)
                told = f"{reason} {at - self._at}"
                if self._ended or (told == problem and not open_end):
                    early = self._ended and open_end
                    raise self.damage("the text ends early" if early else f"no JSON: {reason}") from None
                problem = told
            else:
                goes_on = type(value) in (int, float) and self._text[end : end + 3] in _NUMBER_CUT
                if not goes_on or (self._ended and not inside):
                    self._at = end
                    return value
                if self._ended:
                    raise self.damage("the text ends early")
            held = len(self._text) - self._at
            if held > MEMBER_CHARS:
                raise self.damage(f"a member of more than {MEMBER_CHARS} characters")
            self._more(max(READ_BYTES, held))
