"""pcapng (being written)."""

from __future__ import annotations

NAME = "pcapng"
DESCRIPTION = "pcapng (Wireshark)"


def sniff(head: bytes) -> bool:
    """Whether an input starts with a section header."""
    return head[:4] == b"\n\r\r\n"
