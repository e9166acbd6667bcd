"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Captures and kernel logs: files, folders, globs, object-store URLs, - (standard input); or one dataset.",
    ),
]
Flow = Annotated[
    str | None,
    typer.Option(
        "--flow",
        metavar="FLOW",
        help="Flow id, 'stream N' (Wireshark's) or HOST:PORT-HOST:PORT; default: all flows.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes; errors only.")]
Hz = Annotated[
    int | None,
    typer.Option(
        "--hz",
        min=1,
        max=10_000,
        help="Timer frequency of the kernel that wrote an old tcpprobe log with srtt in jiffies.",
    ),
]
