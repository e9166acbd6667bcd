"""Names for what stands in a frame, and for what becomes of it."""

from __future__ import annotations

#: What a layer is (``LAYER.kind``).
VLAN, MPLS, PPPOE, GRE, IPIP, VXLAN, GENEVE, GTP, TEREDO = range(1, 10)

#: What became of a frame.
FOUND, OTHER, CUT, MALFORMED, FRAGMENT, UNKNOWN_LINK, TOO_DEEP, CUT_TRANSPORT, QUOTED = range(9)

# What stands at the current place.
(
    AT_ETHER, AT_TYPE, AT_IP, AT_IP4, AT_IP6, AT_LLC, AT_PPP, AT_MPLS, AT_LOOP, AT_SLL, AT_SLL2, AT_WIFI, AT_RADIOTAP,
    AT_PPI, AT_NFLOG, AT_GRE, AT_PROTO, AT_UDP, AT_PPP_HDLC, AT_FDDI, AT_RING, AT_PPPOE, AT_CHDLC,
) = range(23)  # fmt: skip
