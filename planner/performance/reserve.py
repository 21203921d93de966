"""Memory beside weights and cache: what the profiling run of vLLM finds, from the shapes of the LLM.

Per accelerator, with T tokens and S requests in a step, V the vocabulary, h and f the hidden and feed-forward sizes::

    reserve = runtime + collective + max(layer, sampler) + experts + graphs
    layer   = 2 x T x (3 f / tp + 4.25 h)                     one gated feed-forward layer and what is alive beside it
    sampler = 14.5 x S x V + 4 x T x h                        logits at 16 and 32 bit, their order, hidden states
    experts = 2 x T x k x (3 w / tp + h)                      workspace of k visited experts of width w
    graphs  = 16 MiB x layers / pp                            0 where none are captured

Fitted on start-up records of vLLM 0.19.0 on an H100 (V8 of data/SOURCES.md): the two constants 14.5 and 4.25, the
runtime of 0.25 GiB, and 1.9 GiB more where ranks talk to each other. The experts' workspace outlives the layer, so it
adds up. Graphs are fitted on V1: newer versions take them off the cache, 0.19 does not, and none of the records tells
them from what else a driver holds. T and S are the defaults of vLLM's server unless the variant says otherwise (V7).
"""

from __future__ import annotations

from typing import Final

from models.hardware import Accelerator
from models.llm import Llm
from models.variant import Variant

__all__ = ["RESERVE_BYTES", "activation_bytes", "batched_tokens", "max_requests", "reserve_bytes"]

RESERVE_BYTES: Final = 3 * 2**30
"""Where the shapes of the LLM are not known. AIConfigurator (S1) sets 3.5 GiB aside."""

_RUNTIME_BYTES: Final = 2**28
_COLLECTIVE_BYTES: Final = 19 * 2**30 // 10
_GRAPH_BYTES_PER_LAYER: Final = 16 * 2**20
_NUMBER_BYTES: Final = 2
_FEED_FORWARD: Final = 4
"""Feed-forward over hidden size, where nobody states it."""

_LARGE_BYTES: Final = 70 * 2**30
_TOKENS: Final = (2048, 8192)
_REQUESTS: Final = (256, 1024)


def batched_tokens(accelerator: Accelerator, variant: Variant) -> int:
    """Tokens of one step at most: as given, else what vLLM's server takes on this accelerator (V7)."""
    return variant.engine_arguments.batched_tokens or _TOKENS[_is_large(accelerator)]


def max_requests(accelerator: Accelerator, variant: Variant) -> int:
    """Requests of one step at most: as given, else what vLLM's server takes on this accelerator (V7)."""
    requests = variant.engine_arguments.max_requests or _REQUESTS[_is_large(accelerator)]
    return min(requests, batched_tokens(accelerator, variant))


def reserve_bytes(llm: Llm, accelerator: Accelerator, variant: Variant) -> int:
    """Bytes per accelerator that neither weights nor cache may take: as the variant says, else by the formula."""
    if variant.activation_reserve_bytes is not None:
        return variant.activation_reserve_bytes
    parallelism = variant.parallelism
    collective = _COLLECTIVE_BYTES if parallelism.tp * parallelism.dp > 1 else 0
    activations = activation_bytes(llm, accelerator, variant)
    if activations is None:
        return RESERVE_BYTES + collective
    graphs = 0
    if variant.engine_arguments.graphs:
        graphs = _GRAPH_BYTES_PER_LAYER * _ceil(llm.layers, parallelism.pp)
    return _RUNTIME_BYTES + collective + activations + graphs


def activation_bytes(llm: Llm, accelerator: Accelerator, variant: Variant) -> int | None:
    """Peak of what a step holds beside weights and cache, bytes per accelerator; None: shapes are not known."""
    hidden, vocabulary = llm.hidden_size, llm.vocabulary
    if hidden is None or vocabulary is None:
        return None
    tp, tokens = variant.parallelism.tp, batched_tokens(accelerator, variant)
    width = llm.feed_forward_size
    if width is None and (llm.moe is None or llm.moe.expert_size is None):
        width = _FEED_FORWARD * hidden
    layer = _NUMBER_BYTES * tokens * (3 * _ceil(width or 0, tp) + 17 * hidden // 4)
    sampler = max_requests(accelerator, variant) * vocabulary * 29 // 2 + 2 * _NUMBER_BYTES * tokens * hidden
    experts = 0
    if llm.moe is not None and llm.moe.expert_size is not None:
        # Under expert parallelism a rank holds whole experts.
        expert = 3 * _ceil(llm.moe.expert_size, 1 if variant.parallelism.ep > 1 else tp) + hidden
        experts = _NUMBER_BYTES * tokens * llm.moe.experts_per_token * expert
    return max(layer, sampler) + experts


def _is_large(accelerator: Accelerator) -> bool:
    return accelerator.memory_bytes >= _LARGE_BYTES and "a100" not in accelerator.id.casefold()


def _ceil(count: int, divisor: int) -> int:
    return -(-count // divisor)
