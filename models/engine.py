"""What an inference engine is started with, as far as it decides memory and capacity."""

from __future__ import annotations

from pydantic import Field

from models.units import Count, PositiveCount, TokenCount
from models.value import Value

__all__ = ["EngineArguments"]


class EngineArguments(Value):
    """Arguments of the engine; ``None``: its default for the accelerator."""

    context_tokens: TokenCount | None = Field(
        None, description="longest input and output together that it takes (max_model_len of vLLM), tokens"
    )
    batched_tokens: TokenCount | None = Field(
        None, le=10**7, description="tokens of one step at most (max_num_batched_tokens of vLLM)"
    )
    max_requests: PositiveCount | None = Field(
        None, le=10**6, description="requests in one step at most (max_num_seqs of vLLM)"
    )
    block_tokens: TokenCount = Field(16, le=10**5, description="tokens of one KV block (block_size of vLLM)")
    graphs: bool = Field(True, description="whether CUDA graphs are captured (False: enforce_eager of vLLM)")
    redundant_experts: Count = Field(
        0,
        le=10**5,
        description="further copies of experts over all ranks (num_redundant_experts of vLLM's EPLB)",
    )
    prefix_caching: bool | None = Field(None, description="whether shared prefixes are kept; None: as usual")
    other: tuple[str, ...] = Field(
        (), max_length=500, description="further arguments, as written; nothing is concluded from them"
    )
