"""What one replica has to do per iteration and per request, in seconds at the peak figures of its hardware.

Figures are per accelerator of the replica that has most to do. A field holds a number, or one number per
measured row where a table is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.hardware import Accelerator
from models.llm import LatentAttention, Llm, Precision, bytes_of
from models.performance import RatingQuestion
from models.variant import Parallelism, Role
from planner.performance.weights import routed_parameters

__all__ = ["Number", "Setup", "Work", "lacking", "peak_flops", "setup_of", "stacked", "work_of"]

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)

_WIDE: Final = bytes_of(Precision.BF16)
_FLOPS_PER_PARAMETER: Final = 2
_ALL_REDUCES_PER_LAYER: Final = 2


@dataclass(frozen=True, slots=True)
class Setup:
    """What work follows from: an LLM as it is served, and the shape of its requests.

    Attributes:
        llm: the network.
        accelerator: where it runs.
        parallelism: how a replica spreads.
        weights: precision of the weights.
        kv_cache: precision of the KV cache.
        role: phases that the replica serves.
        input_tokens: per request; 0: the source does not say, and its latencies hold no prefill.
        output_tokens: per request.
        cached_share: of the input that is found in the prefix cache and not computed.
    """

    llm: Llm
    accelerator: Accelerator
    parallelism: Parallelism
    weights: Precision
    kv_cache: Precision
    role: Role
    input_tokens: float
    output_tokens: float
    cached_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Work(Generic[Number]):
    """Work of a replica; seconds are at peak bandwidth, peak FLOP/s and peak link speed.

    Attributes:
        layers: transformer layers that a token passes.
        expert_layers: those of them with routed experts.
        weights_s: to read once what every token visits.
        experts_s: to read once all routed experts.
        idle_share: of the routed experts that one token leaves alone.
        kv_s: to read the KV cache of one sequence of mean length.
        flops_s: to compute one token, routed experts excluded or, with them, for LLMs that have none.
        expert_flops_s: to compute one token of an LLM with routed experts, all it visits.
        attention_s: to compute the attention of a whole prompt.
        hops: all-reduces of one iteration; 0 on one accelerator.
        link_s: to exchange the hidden states of one token.
        input_tokens: computed per request.
        held_tokens: KV tokens that a request holds on average.
        output_tokens: per request.
        prefilled: input tokens that are computed per generated token, in the same iterations.
        ranks: replicas inside the replica that share no KV cache (data parallel).
        stages: pipeline stages, which hold different sequences at any time.
    """

    layers: Number
    expert_layers: Number
    weights_s: Number
    experts_s: Number
    idle_share: Number
    kv_s: Number
    flops_s: Number
    expert_flops_s: Number
    attention_s: Number
    hops: Number
    link_s: Number
    input_tokens: Number
    held_tokens: Number
    output_tokens: Number
    prefilled: Number
    ranks: Number
    stages: Number


def setup_of(question: RatingQuestion) -> Setup:
    """The setup that a question asks about."""
    variant = question.variant
    return Setup(
        llm=question.llm,
        accelerator=question.accelerator,
        parallelism=variant.parallelism,
        weights=question.precision,
        kv_cache=variant.quantization.kv_cache,
        role=variant.role,
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        cached_share=question.cached_share,
    )


def lacking(setup: Setup) -> tuple[str, ...]:
    """Names of the figures that the formula needs and nobody stated; empty: it can answer."""
    accelerator, llm = setup.accelerator, setup.llm
    needs: dict[str, object] = {
        "memory_bandwidth": accelerator.memory_bandwidth,
        "bf16_flops": accelerator.bf16_flops,
        "hidden_size": llm.hidden_size,
    }
    if setup.parallelism.gpus > 1:
        needs["scale_up_bandwidth"] = accelerator.scale_up_bandwidth
    if llm.moe is not None:
        needs["active_parameters"] = llm.active_parameters
    return tuple(name for name, value in needs.items() if not value)


def work_of(setup: Setup) -> Work[float]:
    """Work of one replica.

    Weights and KV heads are split over tensor-parallel ranks (a latent is repeated), routed experts
    over all accelerators of a stage, requests over data-parallel ranks. A token passes every pipeline stage
    in turn, so weights and layers of all stages count for its latency.

    Raises:
        ValueError: a figure that :func:`lacking` names is missing.
    """
    missing = lacking(setup)
    if missing:
        raise ValueError(f"the roofline needs {', '.join(missing)}")
    llm, parallelism = setup.llm, setup.parallelism
    tp, group = parallelism.tp, parallelism.tp * parallelism.dp
    bandwidth = setup.accelerator.memory_bandwidth or 1.0
    peak = peak_flops(setup.accelerator, setup.weights) or 1.0
    routed = _routed_parameters(llm)
    table = (llm.vocabulary or 0) * (llm.hidden_size or 0)
    computed = max(0.0, (llm.active_parameters or llm.parameters) - table)
    flops_s = _FLOPS_PER_PARAMETER * computed / group / peak
    stored = bytes_of(setup.weights)
    computed_input = setup.input_tokens * (1.0 - setup.cached_share)
    return Work(
        layers=float(llm.layers),
        expert_layers=float(llm.layers if llm.moe else 0),
        weights_s=max(0.0, llm.parameters - routed - table) * stored / tp / bandwidth,
        experts_s=routed * stored / group / bandwidth,
        idle_share=1.0 - llm.moe.experts_per_token / llm.moe.experts if llm.moe else 1.0,
        kv_s=_kv_bytes(setup) / bandwidth,
        flops_s=0.0 if llm.moe else flops_s,
        expert_flops_s=flops_s if llm.moe else 0.0,
        attention_s=_attention_flops(setup) / group / (setup.accelerator.bf16_flops or 1.0),
        hops=float(_ALL_REDUCES_PER_LAYER * llm.layers if group > 1 else 0),
        link_s=_link_s(setup),
        input_tokens=computed_input,
        held_tokens=_held_tokens(setup),
        output_tokens=float(setup.output_tokens),
        prefilled=computed_input / setup.output_tokens if setup.role is Role.BOTH else 0.0,
        ranks=float(parallelism.dp),
        stages=float(parallelism.pp),
    )


def stacked(works: Sequence[Work[float]]) -> Work[Floats]:
    """One value that holds an array of the figures of all, in this order."""
    return Work(
        **{field.name: np.array([getattr(work, field.name) for work in works]) for field in fields(Work)}
    )


def peak_flops(accelerator: Accelerator, precision: Precision) -> float | None:
    """Dense peak at which these weights are multiplied: where there is no such unit, at 16 bit; None: not stated."""
    wide = accelerator.bf16_flops
    match precision:
        case Precision.FP8:
            return accelerator.fp8_flops or wide
        case Precision.FP4:
            return accelerator.fp4_flops or wide
        case _:
            return wide


def _routed_parameters(llm: Llm) -> float:
    return float(min(routed_parameters(llm), llm.parameters))


def _held_tokens(setup: Setup) -> float:
    """The input and, on average over the life of a request, half of the output."""
    return setup.input_tokens + setup.output_tokens / 2


def _kv_bytes(setup: Setup) -> float:
    """KV cache that one sequence of mean length has on one accelerator, bytes."""
    llm = setup.llm
    length = _held_tokens(setup)
    window = min(length, llm.sliding_window_tokens or length)
    held = llm.full_layers * length + llm.sliding_layers * window
    attention = llm.attention
    split = 1 if isinstance(attention, LatentAttention) else min(setup.parallelism.tp, attention.kv_heads)
    return held * attention.numbers_per_token_and_layer * bytes_of(setup.kv_cache) / split


def _attention_flops(setup: Setup) -> float:
    """Scores and values of a causal prompt, with heads as wide as the hidden state together, FLOP."""
    llm, length = setup.llm, setup.input_tokens
    window = min(length, llm.sliding_window_tokens or length)
    pairs = llm.full_layers * length * length / 2 + llm.sliding_layers * window * (length - window / 2)
    return 2 * _FLOPS_PER_PARAMETER * pairs * (1.0 - setup.cached_share) * (llm.hidden_size or 0)


def _link_s(setup: Setup) -> float:
    """Ring all-reduce of one token's hidden states, twice per layer, s."""
    group = setup.parallelism.tp * setup.parallelism.dp
    if group == 1:
        return 0.0
    sent = 2 * (group - 1) / group * (setup.llm.hidden_size or 0) * _WIDE
    return _ALL_REDUCES_PER_LAYER * setup.llm.layers * sent / (setup.accelerator.scale_up_bandwidth or 1.0)
