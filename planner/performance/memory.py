"""What fits beside the weights: KV-cache capacity of one replica, in tokens.

Per accelerator::

    kv_bytes = floor(memory x utilization) - weights - reserve
    block    = 16 tokens x layers of the stage x numbers per token, layer and rank x bytes of a number
    tokens   = dp x 16 x floor(kv_bytes / block)

Sources (codes of data/SOURCES.md): blocks of 16 tokens and the order of subtraction are vLLM's (V1); weights
and reserve have modules of their own. All arithmetic is in integers.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from models.hardware import Accelerator
from models.llm import Attention, GroupedQueryAttention, Llm, Precision, bytes_of
from models.units import Bytes, Count
from models.value import Value
from models.variant import Parallelism, Variant
from planner.performance.reserve import RESERVE_BYTES, reserve_bytes
from planner.performance.weights import weight_bytes_per_accelerator

__all__ = [
    "BLOCK_TOKENS",
    "RESERVE_BYTES",
    "KvFit",
    "WayToFit",
    "kv_bytes_per_token",
    "kv_capacity_tokens",
    "tokens_in",
    "usable_bytes",
    "way_to_fit",
    "weight_bytes_per_accelerator",
]

BLOCK_TOKENS: Final = 16
"""Tokens of one KV block: the default of vLLM."""

_PARTS: Final = 16
_LARGEST_TP: Final = 64
_NARROWER: Final = (Precision.FP8, Precision.FP4)


class KvFit(Value):
    """What the memory of one replica holds.

    Attributes are bytes per accelerator and tokens per replica.
    """

    weight_bytes: Bytes = Field(description="weights on the fullest accelerator, bytes")
    reserve_bytes: Bytes = Field(
        0, description="kept for activations, sampling, graphs and the runtime, bytes"
    )
    kv_bytes: Bytes = Field(
        description="left for the KV cache per accelerator, bytes; 0 when nothing is left"
    )
    missing_bytes: Bytes = Field(
        description="0: it fits; else what each accelerator lacks for the smallest cache that serves, bytes"
    )
    kv_tokens: Count | None = Field(
        description="KV capacity of one replica, tokens; None: the LLM keeps no KV cache, or is opaque"
    )

    @property
    def fits(self) -> bool:
        """Whether the weights leave room for at least one KV block."""
        return self.missing_bytes == 0


class WayToFit(Value):
    """The nearest variants that would fit; None where none of those looked at does."""

    tp: Count | None = Field(None, description="smallest larger tensor parallelism at the same precision")
    weights: Precision | None = Field(
        None, description="widest smaller precision of the weights, all else alike"
    )


def kv_capacity_tokens(
    llm: Llm, accelerator: Accelerator, variant: Variant, *, sequence_tokens: int | None = None
) -> KvFit:
    """KV capacity of one replica of ``variant``, or by how much its weights miss.

    Where the engine is told a longest context, the cache must hold one request of that length, as vLLM demands.

    Args:
        llm: the network.
        accelerator: where it runs; only its name and memory are read.
        variant: parallelism, precision, memory utilization, engine arguments and reserve.
        sequence_tokens: length of one request, tokens. Layers with a sliding window hold no more than
            the window of it, and layers with a fixed state hold one state per request. None: every layer is
            counted as if it held everything (the safe side), states are not counted.

    Returns:
        Bytes per accelerator and tokens per replica; data-parallel ranks each have a cache of their own.
    """
    if llm.opaque:
        return KvFit(weight_bytes=0, kv_bytes=0, missing_bytes=0, kv_tokens=None)
    weights = weight_bytes_per_accelerator(llm, variant)
    reserve = reserve_bytes(llm, accelerator, variant)
    left = usable_bytes(accelerator, variant) - weights - reserve
    missing = max(0, _least_cache(llm, variant) - left)
    tokens: int | None = 0
    if not missing:
        length = sequence_tokens or 1
        per_sequence = kv_bytes_per_token(llm, variant, sequence_tokens=sequence_tokens)
        block = variant.engine_arguments.block_tokens
        tokens = (
            variant.parallelism.dp * tokens_in(left, per_sequence, per=length, block=block)
            if per_sequence
            else None
        )
    return KvFit(
        weight_bytes=weights,
        reserve_bytes=reserve,
        kv_bytes=max(0, left),
        missing_bytes=missing,
        kv_tokens=tokens,
    )


def usable_bytes(accelerator: Accelerator, variant: Variant) -> int:
    """Memory of one accelerator that the engine may take, bytes."""
    # Millionths keep the product exact: 0.9 x 80 GiB must not depend on the last bit of 0.9.
    return accelerator.memory_bytes * round(variant.memory_utilization * 10**6) // 10**6


def tokens_in(kv_bytes: int, bytes_per_token: int, *, per: int = 1, block: int = BLOCK_TOKENS) -> int:
    """Tokens that whole blocks in ``kv_bytes`` hold when ``per`` tokens take ``bytes_per_token`` bytes."""
    return kv_bytes * per // (bytes_per_token * block) * block


def kv_bytes_per_token(llm: Llm, variant: Variant, *, sequence_tokens: int | None = None) -> int:
    """Bytes on the fullest accelerator of one rank: of one token, or of a whole sequence when its length is given.

    KV heads are split over tensor-parallel ranks and repeated when there are fewer heads than ranks; a
    latent (MLA) is repeated on every rank; layers are split over pipeline stages. The fixed state of
    layers without a cache is part of a sequence, not of a token, and is split over the ranks.
    """
    parallelism = variant.parallelism
    full = _ceil(llm.full_layers, parallelism.pp)
    sliding = _ceil(llm.sliding_layers, parallelism.pp)
    length = sequence_tokens or 1
    window = length if sequence_tokens is None else min(length, llm.sliding_window_tokens or length)
    numbers = full * length * _numbers_of_a_rank(llm.attention, parallelism)
    numbers += sliding * window * _numbers_of_a_rank(llm.sliding_attention or llm.attention, parallelism)
    index_layers = min(full, llm.index_layers)
    index = index_layers * length * llm.attention.index_bytes_per_token_and_layer
    state = 0 if sequence_tokens is None else llm.state_bytes_per_sequence
    cached = _ceil(numbers * int(bytes_of(variant.quantization.kv_cache) * _PARTS), _PARTS)
    return cached + index + _ceil(state, parallelism.pp * parallelism.tp)


def way_to_fit(
    llm: Llm, accelerator: Accelerator, variant: Variant, *, sequence_tokens: int | None = None
) -> WayToFit:
    """The smallest larger tensor parallelism (in powers of two, to 64), and the widest smaller precision, that fit."""

    def fits(other: Variant) -> bool:
        return kv_capacity_tokens(llm, accelerator, other, sequence_tokens=sequence_tokens).fits

    layout = variant.parallelism
    powers = (2**power for power in range(1, _LARGEST_TP.bit_length()))
    wider = (degree for degree in powers if degree > layout.tp and _divides(llm, degree))
    now = bytes_of(variant.quantization.weights or llm.precision)
    smaller = (precision for precision in _NARROWER if bytes_of(precision) < now)
    return WayToFit(
        tp=next((tp for tp in wider if fits(_with_tp(variant, tp))), None),
        weights=next(
            (
                narrow
                for narrow in smaller
                if fits(variant.but(quantization=variant.quantization.but(weights=narrow)))
            ),
            None,
        ),
    )


def _with_tp(variant: Variant, tp: int) -> Variant:
    """The variant with another tensor parallelism; experts that were spread over its ranks stay spread."""
    layout = variant.parallelism
    ep = layout.ep * tp // layout.tp if layout.ep > 1 and layout.ep * tp % layout.tp == 0 else layout.ep
    return variant.but(parallelism=layout.but(tp=tp, ep=ep), pods_per_replica=1)


def _divides(llm: Llm, tp: int) -> bool:
    """Whether query heads can be split evenly, as engines demand."""
    return llm.query_heads is None or llm.query_heads % tp == 0


def _least_cache(llm: Llm, variant: Variant) -> int:
    """Bytes per accelerator of the smallest cache that serves: one block, or one request of the longest context."""
    block = kv_bytes_per_token(llm, variant) * variant.engine_arguments.block_tokens
    longest = variant.engine_arguments.context_tokens
    return block if longest is None else max(block, kv_bytes_per_token(llm, variant, sequence_tokens=longest))


def _numbers_of_a_rank(attention: Attention, parallelism: Parallelism) -> int:
    """Numbers per token and layer on one tensor-parallel rank."""
    if isinstance(attention, GroupedQueryAttention):
        return _ceil(attention.kv_heads, parallelism.tp) * attention.numbers_per_token_and_head
    return attention.numbers_per_token_and_layer


def _ceil(count: int, divisor: int) -> int:
    return -(-count // divisor)
