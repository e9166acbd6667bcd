"""Fairness and experiment tables as text, seed layout, Markdown, HTML, CSV and JSON.

Every form is a view of one `Document`, or of the long table that `tracetool.experiments.cells` makes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from tracetool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracetool.report.tables.document import Document

#: Name of each form of a document, and the module whose ``render`` makes it.
FORMS = ("text", "seed", "markdown", "html")


def renderer(form: str) -> Callable[[Document], str]:
    """Return the function that renders a document in a form.

    Raises
    ------
    UsageError
        There is no such form.
    """
    if form not in FORMS:
        raise UsageError(f"format {form!r}: expected one of {', '.join((*FORMS, 'csv', 'json'))}")
    return cast("Callable[[Document], str]", import_module(f"{__name__}.{form}").render)
