"""What fits beside the weights: KV-cache capacity of one replica, in tokens.

Per accelerator::

    kv_bytes = floor(memory x utilization) - weights - reserve
    block    = 16 tokens x layers of the stage x numbers per token, layer and rank x bytes of a number
    tokens   = dp x 16 x floor(kv_bytes / block)

Sources (codes of data/SOURCES.md): blocks of 16 tokens and the order of subtraction are vLLM's (V1);
V1 also holds two start-up records of an H100 that the defaults here reproduce from the safe side.
All arithmetic is in integers.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from models.hardware import Accelerator
from models.llm import GroupedQueryAttention, Llm, Precision, bytes_of
from models.units import Bytes, Count
from models.value import Value
from models.variant import Variant

__all__ = [
    "BLOCK_TOKENS",
    "RESERVE_BYTES",
    "KvFit",
    "kv_bytes_per_token",
    "kv_capacity_tokens",
    "tokens_in",
    "weight_bytes_per_accelerator",
]

BLOCK_TOKENS: Final = 16
"""Tokens of one KV block: the default of vLLM."""

RESERVE_BYTES: Final = 3 * 2**30
"""Memory per accelerator for activations, graphs and the runtime, bytes. The two records of V1 show
2.4 and 2.9 GiB; AIConfigurator (S1) sets 3.5 GiB aside."""

_PARTS: Final = 16
_WEIGHT_PARTS: Final = {
    # A 4-bit number costs 9/16 byte: one 8-bit scale per block of 16 numbers (NVFP4; MXFP4 needs less).
    precision: 9 if precision in (Precision.FP4, Precision.INT4) else int(bytes_of(precision) * _PARTS)
    for precision in Precision
}


class KvFit(Value):
    """What the memory of one replica holds.

    Attributes are bytes per accelerator and tokens per replica.
    """

    weight_bytes: Bytes = Field(description="weights on the fullest accelerator, bytes")
    kv_bytes: Bytes = Field(
        description="left for the KV cache per accelerator, bytes; 0 when nothing is left"
    )
    missing_bytes: Bytes = Field(
        description="0: it fits; else what each accelerator lacks for one KV block, bytes"
    )
    kv_tokens: Count | None = Field(
        description="KV capacity of one replica, tokens; None: the LLM keeps no KV cache"
    )

    @property
    def fits(self) -> bool:
        """Whether the weights leave room for at least one KV block."""
        return self.missing_bytes == 0


def kv_capacity_tokens(
    llm: Llm, accelerator: Accelerator, variant: Variant, *, sequence_tokens: int | None = None
) -> KvFit:
    """KV capacity of one replica of ``variant``, or by how much its weights miss.

    Args:
        llm: the network.
        accelerator: where it runs; only its memory is read.
        variant: parallelism, precision, memory utilization and reserve.
        sequence_tokens: length of one request, tokens. Layers with a sliding window hold no more than
            the window of it. None: every layer is counted as if it held everything (the safe side).

    Returns:
        Bytes per accelerator and tokens per replica; data-parallel ranks each have a cache of their own.
    """
    weights = weight_bytes_per_accelerator(llm, variant)
    reserve = RESERVE_BYTES if variant.activation_reserve_bytes is None else variant.activation_reserve_bytes
    # Millionths keep the product exact: 0.9 x 80 GiB must not depend on the last bit of 0.9.
    usable = accelerator.memory_bytes * round(variant.memory_utilization * 10**6) // 10**6
    left = usable - weights - reserve
    per_token = kv_bytes_per_token(llm, variant)
    missing = max(0, per_token * BLOCK_TOKENS - left)
    if missing:
        return KvFit(weight_bytes=weights, kv_bytes=max(0, left), missing_bytes=missing, kv_tokens=0)
    tokens: int | None = None
    if per_token:
        length = sequence_tokens or 1
        windowed = kv_bytes_per_token(llm, variant, sequence_tokens=sequence_tokens)
        tokens = variant.parallelism.dp * tokens_in(left, windowed, per=length)
    return KvFit(weight_bytes=weights, kv_bytes=left, missing_bytes=0, kv_tokens=tokens)


def tokens_in(kv_bytes: int, bytes_per_token: int, *, per: int = 1) -> int:
    """Tokens that whole blocks in ``kv_bytes`` hold when ``per`` tokens take ``bytes_per_token`` bytes."""
    return kv_bytes * per // (bytes_per_token * BLOCK_TOKENS) * BLOCK_TOKENS


def kv_bytes_per_token(llm: Llm, variant: Variant, *, sequence_tokens: int | None = None) -> int:
    """Bytes on the fullest accelerator of one rank: of one token, or of a whole sequence when its length is given.

    KV heads are split over tensor-parallel ranks and repeated when there are fewer heads than ranks; a
    latent (MLA) is repeated on every rank; layers are split over pipeline stages.
    """
    parallelism = variant.parallelism
    attention = llm.attention
    if isinstance(attention, GroupedQueryAttention):
        numbers = 2 * _ceil(attention.kv_heads, parallelism.tp) * attention.head_dim
    else:
        numbers = attention.numbers_per_token_and_layer
    full = _ceil(llm.layers - llm.sliding_layers - llm.stateless_layers, parallelism.pp)
    sliding = _ceil(llm.sliding_layers, parallelism.pp)
    length = sequence_tokens or 1
    window = length if sequence_tokens is None else min(length, llm.sliding_window_tokens or length)
    held = full * length + sliding * window
    return _ceil(held * numbers * int(bytes_of(variant.quantization.kv_cache) * _PARTS), _PARTS)


def weight_bytes_per_accelerator(llm: Llm, variant: Variant) -> int:
    """Bytes of weights on the fullest accelerator of one replica.

    Routed experts are split over tp x dp (whole experts per rank under expert parallelism); all else is
    split over tp and repeated on every data-parallel rank; layers are split over pipeline stages.
    Embedding and output head stay at 16 bit when the weights are stored in fewer.
    """
    parallelism = variant.parallelism
    precision = variant.quantization.weights or llm.precision
    routed = min(_routed_parameters(llm), llm.parameters)
    shared = llm.parameters - routed
    wide = 0
    if bytes_of(precision) < bytes_of(Precision.BF16):
        wide = min(shared, 2 * (llm.vocabulary or 0) * (llm.hidden_size or 0))
    shared_parts = (shared - wide) * _WEIGHT_PARTS[precision] + wide * _WEIGHT_PARTS[Precision.BF16]
    experts = llm.moe.experts if llm.moe else 1
    padded = _ceil(experts, parallelism.ep) * parallelism.ep
    routed_parts = _ceil(routed * _WEIGHT_PARTS[precision] * padded, experts)
    stages = _PARTS * parallelism.pp
    return _ceil(shared_parts, stages * parallelism.tp) + _ceil(
        routed_parts, stages * parallelism.tp * parallelism.dp
    )


def _routed_parameters(llm: Llm) -> int:
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


def _ceil(count: int, divisor: int) -> int:
    return -(-count // divisor)
