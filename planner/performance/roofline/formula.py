"""Latencies of one replica from its work and from how far peak figures are reached.

With ``n`` requests in flight, B = n / stages sequences share an iteration of length::

    step = base + layers + experts + sequences                     (overheads)
         + sqrt((weights + touched experts)^2 + flops^2)           (matrices: read or computed, whichever is longer)
         + kv + prefill + hops + link

where a token that generates carries ``input / output`` prefilled tokens along (continuous batching with
chunked prefill, arXiv 2403.02310), and of E experts of which k are visited B tokens touch the share
1 - (1 - k/E)^B. The first token takes its own prefill, the wait for the prefills of others (in proportion
to the share of time that prefills take) and the burst in which a closed-loop run starts. Roofline:
Williams, Waterman, Patterson, CACM 52 (2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from planner.performance.roofline.work import Number, Work

__all__ = ["Shares", "first_token_s", "prefill_s", "step_s"]


@dataclass(frozen=True, slots=True)
class Shares(Generic[Number]):
    """How much longer than at peak each kind of work takes, and overheads that no peak figure knows.

    Attributes:
        base_s: per iteration.
        layer_s: per layer.
        expert_layer_s: per layer with routed experts.
        sequence_s: per sequence of a rank and iteration.
        weights: times the time to read weights at peak.
        experts: times the time to read touched experts at peak.
        kv: times the time to read KV cache at peak.
        flops: times the time to compute generated tokens at peak.
        expert_flops: as flops, for LLMs with routed experts.
        prefill: times the time to compute prefilled tokens at peak.
        expert_prefill: as prefill, for LLMs with routed experts.
        hop_s: per all-reduce.
        link: times the time to send hidden states at peak.
        first_base_s: of the first token: tokenizer, scheduler, network.
        first_steps: iterations that a new request waits for.
        first_prefill: times its own prefill.
        wait: weight of the wait behind prefills of others.
        burst: prefills of others that a request in a starting burst waits for, per request in flight.
    """

    base_s: Number
    layer_s: Number
    expert_layer_s: Number
    sequence_s: Number
    weights: Number
    experts: Number
    kv: Number
    flops: Number
    expert_flops: Number
    prefill: Number
    expert_prefill: Number
    hop_s: Number
    link: Number
    first_base_s: Number
    first_steps: Number
    first_prefill: Number
    wait: Number
    burst: Number


def step_s(work: Work[Number], shares: Shares[Number], in_flight: Number) -> Number:
    """Length of an iteration, hence the inter-token latency, s.

    Args:
        work: of the replica.
        shares: how far peaks are reached.
        in_flight: requests in flight in the whole replica, at least 1.
    """
    batch = in_flight / work.stages
    local = batch / work.ranks
    touched = 1.0 - work.idle_share**batch
    read = shares.weights * work.weights_s + shares.experts * work.experts_s * touched
    computed = (shares.flops * work.flops_s + shares.expert_flops * work.expert_flops_s) * batch
    overhead = (
        shares.base_s
        + shares.layer_s * work.layers
        + shares.expert_layer_s * work.expert_layers
        + shares.sequence_s * local
        + shares.hop_s * work.hops
    )
    # One prompt is computed for every ``output_tokens`` that a sequence generates.
    prompts = work.prefilled * batch / (work.input_tokens + (work.input_tokens == 0))
    length: Number = (
        overhead
        + (read * read + computed * computed) ** 0.5
        + shares.kv * work.kv_s * local
        + prompts * prefill_s(work, shares)
        + shares.link * work.link_s * batch
    )
    return length


def prefill_s(work: Work[Number], shares: Shares[Number]) -> Number:
    """Computing and exchanging a whole prompt in between other work, s."""
    computed = shares.prefill * work.flops_s + shares.expert_prefill * work.expert_flops_s
    attention = work.attention_s * (
        shares.prefill * (work.flops_s > 0) + shares.expert_prefill * (work.expert_flops_s > 0)
    )
    return (computed + shares.link * work.link_s) * work.input_tokens + attention


def first_token_s(work: Work[Number], shares: Shares[Number], in_flight: Number) -> Number:
    """Mean time to the first token with ``in_flight`` requests in a closed loop, s."""
    step, prefill = step_s(work, shares, in_flight), prefill_s(work, shares)
    others = in_flight / work.ranks
    waiting = shares.wait * others * prefill / (work.output_tokens * step)
    return (
        shares.first_base_s
        + shares.first_steps * step
        + shares.first_prefill * prefill * (1.0 + waiting + shares.burst * others)
    )
