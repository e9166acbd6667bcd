"""The layers around a flow: a list for people, and a digest that is part of the flow's key."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.flow_table import mix


@bare_kernel
def list_layer(head: Any, layers: Any, kind: int, value: int) -> None:
    """List a layer; what is beyond the room is only counted in the digest."""
    if head.layers < len(layers):
        layer = layers[head.layers]
        layer.kind = kind
        layer.value = value
        layer.version = 0
        head.layers += 1


@bare_kernel
def identify(head: Any, kind: int, value: int) -> None:
    """Add a layer to the digest."""
    digest = mix(head.encapsulation * 31 + (kind << 56) + value)
    head.encapsulation = digest | 1  # 0 is kept for none


@bare_kernel
def list_ends(head: Any, layers: Any) -> None:
    """Add the ends of the tunnel that was listed last, in one order for both directions."""
    swap = head.src0 > head.dst0 or (head.src0 == head.dst0 and head.src1 > head.dst1)
    low0, low1, high0, high1 = head.src0, head.src1, head.dst0, head.dst1
    if swap:
        low0, low1, high0, high1 = high0, high1, low0, low1
    identify(head, 0, mix(low0) + mix(low1 + 1) + mix(high0 + 2) + mix(high1 + 3))
    layer = layers[head.layers - 1]
    layer.version = head.version
    layer.low0, layer.low1, layer.high0, layer.high1 = low0, low1, high0, high1


@bare_kernel
def copy_head(source: Any, target: Any) -> None:
    """Copy what was read up to a transport header."""
    target.src0, target.src1, target.dst0, target.dst1 = source.src0, source.src1, source.dst0, source.dst1
    target.src_port, target.dst_port = source.src_port, source.dst_port
    target.protocol, target.version, target.at, target.end = source.protocol, source.version, source.at, source.end
    target.ip_bytes, target.ip_id, target.ttl, target.tos = source.ip_bytes, source.ip_id, source.ttl, source.tos
    target.first_fragment, target.encapsulation, target.layers = (
        source.first_fragment,
        source.encapsulation,
        source.layers,
    )
