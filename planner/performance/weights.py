"""Bytes of weights on the fullest accelerator of a replica.

Sources (codes of data/SOURCES.md): a 4-bit float costs 4.5 bit with one 8-bit scale per 16 numbers (V5), a 4-bit
integer 4.16 bit with a 16-bit scale and a 4-bit zero per 128 numbers (V6). All arithmetic is in integers.
"""

from __future__ import annotations

import math
from typing import Final

from models.llm import Llm, Precision, bytes_of
from models.variant import Variant

__all__ = ["routed_parameters", "weight_bytes_per_accelerator"]

_PARTS: Final = 256
"""Weights are counted in parts of a byte."""

_USUAL_BITS: Final = {precision: 8.0 * bytes_of(precision) for precision in Precision} | {
    Precision.FP4: 4 + 8 / 16,
    Precision.INT4: 4 + (16 + 4) / 128,
}
_WIDE: Final = int(bytes_of(Precision.BF16) * _PARTS)


def weight_bytes_per_accelerator(llm: Llm, variant: Variant) -> int:
    """Bytes of weights on the fullest accelerator of one replica.

    Routed experts are split over tp x dp (whole experts per rank under expert parallelism, redundant ones
    counted); all else is split over tp and repeated on every data-parallel rank; layers are split over
    pipeline stages. Where weights are stored in fewer than 16 bit, those that the LLM names as wide (by default
    embedding and output head) are not.
    """
    parallelism = variant.parallelism
    precision = variant.quantization.weights or llm.precision
    routed = min(routed_parameters(llm), llm.parameters)
    shared = llm.parameters - routed
    wide = min(shared, _wide_parameters(llm, precision))
    parts = _parts_per_weight(llm, precision)
    experts = llm.moe.experts if llm.moe else 1
    redundant = variant.engine_arguments.redundant_experts if llm.moe else 0
    padded = _ceil(experts + redundant, parallelism.ep) * parallelism.ep
    stages = _PARTS * parallelism.pp
    return _ceil((shared - wide) * parts + wide * _WIDE, stages * parallelism.tp) + _ceil(
        _ceil(routed * parts * padded, experts), stages * parallelism.tp * parallelism.dp
    )


def routed_parameters(llm: Llm) -> int:
    """Parameters of all routed experts; 0 when unknown, so that they count as repeated (the safe side)."""
    if llm.moe is None:
        return 0
    if llm.moe.routed_parameters is not None:
        return llm.moe.routed_parameters
    idle = llm.moe.experts - llm.moe.experts_per_token
    if llm.active_parameters is None or idle <= 0:
        return 0
    # A token leaves (experts - visited) experts of each layer alone; they are parameters - active.
    return (llm.parameters - llm.active_parameters) * llm.moe.experts // idle


def _wide_parameters(llm: Llm, precision: Precision) -> int:
    """Parameters that stay at 16 bit although the weights are stored in fewer."""
    if bytes_of(precision) >= bytes_of(Precision.BF16):
        return 0
    if precision is llm.precision and llm.wide_parameters is not None:
        return llm.wide_parameters
    return 2 * (llm.vocabulary or 0) * (llm.hidden_size or 0)


def _parts_per_weight(llm: Llm, precision: Precision) -> int:
    published = llm.weight_bits if precision is llm.precision else None
    return math.ceil((published or _USUAL_BITS[precision]) * _PARTS / 8)


def _ceil(count: int, divisor: int) -> int:
    return -(-count // divisor)
