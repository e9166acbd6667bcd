"""Names of the link types that captures use (https://www.tcpdump.org/linktypes.html)."""

from __future__ import annotations

NAMES = {
    0: "NULL",
    1: "ETHERNET",
    6: "IEEE802_5",
    9: "PPP",
    10: "FDDI",
    12: "RAW",
    14: "RAW",
    50: "PPP_HDLC",
    51: "PPP_ETHER",
    100: "ATM_RFC1483",
    101: "RAW",
    104: "C_HDLC",
    105: "IEEE802_11",
    108: "LOOP",
    113: "LINUX_SLL",
    127: "IEEE802_11_RADIOTAP",
    192: "PPI",
    204: "PPP_WITH_DIR",
    228: "IPV4",
    229: "IPV6",
    239: "NFLOG",
    276: "LINUX_SLL2",
}


def name(link: int) -> str:
    """Name of a link type; its number where it has none here.

    Examples
    --------
    >>> name(1), name(147)
    ('ETHERNET', 'USER0')
    """
    if 147 <= link <= 162:
        return f"USER{link - 147}"
    return NAMES.get(link, f"LINKTYPE_{link}")
