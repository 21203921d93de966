"""LLMs as the planner sees them: weights, attention, and the KV cache that one token needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.ids import LlmId
from models.units import Count, PositiveCount, TokenCount
from models.value import Value

__all__ = ["Attention", "GroupedQueryAttention", "LatentAttention", "Llm", "Moe", "Precision", "bytes_of"]


class Precision(StrEnum):
    """How a number is stored."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"


def bytes_of(precision: Precision) -> float:
    """Bytes that one stored number takes, scales of blocks not counted."""
    match precision:
        case Precision.FP32:
            return 4.0
        case Precision.BF16 | Precision.FP16:
            return 2.0
        case Precision.FP8 | Precision.INT8:
            return 1.0
        case Precision.FP4 | Precision.INT4:
            return 0.5


class GroupedQueryAttention(Value):
    """Keys and values of ``kv_heads`` heads are kept (multi-head: as many as query heads; multi-query: one)."""

    kind: Literal["gqa"] = Field(
        "gqa", description="grouped-query attention, multi-head and multi-query included"
    )
    kv_heads: PositiveCount = Field(description="key-value heads (num_key_value_heads of the configuration)")
    head_dim: PositiveCount = Field(description="numbers per head (head_dim of the configuration)")

    @property
    def numbers_per_token_and_layer(self) -> int:
        """Numbers kept per token and layer: one key and one value of every KV head."""
        return 2 * self.kv_heads * self.head_dim


class LatentAttention(Value):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, 2.1): one latent and one rotary key are kept."""

    kind: Literal["mla"] = Field("mla", description="multi-head latent attention")
    kv_lora_rank: PositiveCount = Field(
        description="numbers of the compressed latent (kv_lora_rank of the configuration)"
    )
    rope_head_dim: PositiveCount = Field(
        description="numbers of the shared rotary key (qk_rope_head_dim of the configuration)"
    )

    @property
    def numbers_per_token_and_layer(self) -> int:
        """Numbers kept per token and layer: the compressed latent and the shared rotary key."""
        return self.kv_lora_rank + self.rope_head_dim


Attention = Annotated[GroupedQueryAttention | LatentAttention, Field(discriminator="kind")]


class Moe(Value):
    """Mixture of experts: how many experts a layer has and how many a token visits."""

    experts: PositiveCount = Field(description="routed experts per MoE layer")
    experts_per_token: PositiveCount = Field(
        description="routed experts that a token visits (num_experts_per_tok of the configuration)"
    )
    shared_experts: Count = Field(0, description="experts per MoE layer that every token visits")
    routed_parameters: PositiveCount | None = Field(
        None, le=10**14, description="parameters of all routed experts of all layers together; None: unknown"
    )


class Llm(Value):
    """One LLM. Figures come from its published configuration; a figure nobody states is ``None``."""

    id: LlmId = Field(description="name, as services name it")
    parameters: PositiveCount = Field(le=10**14, description="all parameters")
    active_parameters: PositiveCount | None = Field(
        None, le=10**14, description="parameters a token visits; None: all"
    )
    layers: PositiveCount = Field(
        description="transformer layers, of every kind (num_hidden_layers of the configuration)"
    )
    attention: Attention = Field(description="what a token leaves in the KV cache")
    sliding_window_tokens: TokenCount | None = Field(None, description="window of the sliding-window layers")
    sliding_layers: Count = Field(0, description="how many of the layers keep only the window")
    stateless_layers: Count = Field(0, description="layers that keep no KV cache (linear attention, Mamba)")
    moe: Moe | None = Field(None, description="experts; None: dense")
    hidden_size: PositiveCount | None = Field(
        None, description="width of the hidden state (hidden_size of the configuration); None: unknown"
    )
    vocabulary: PositiveCount | None = Field(
        None, description="tokens it knows (vocab_size of the configuration); None: unknown"
    )
    max_context_tokens: TokenCount | None = Field(
        None, description="longest input and output together, tokens; None: unknown"
    )
    precision: Precision = Field(Precision.BF16, description="precision of the published weights")
    aliases: tuple[str, ...] = Field((), description="other names, e.g. the repository the weights live in")

    @model_validator(mode="after")
    def _layers_add_up(self) -> Self:
        if self.sliding_layers + self.stateless_layers > self.layers:
            raise ValueError("sliding_layers and stateless_layers together exceed layers")
        if self.sliding_layers and self.sliding_window_tokens is None:
            raise ValueError("sliding_layers needs sliding_window_tokens")
        return self

    def kv_bytes(self, tokens: int, precision: Precision = Precision.BF16) -> int:
        """Bytes of KV cache that one sequence of ``tokens`` tokens holds over all layers.

        Sliding-window layers hold at most their window, stateless layers nothing. Linear in the tokens
        where there is no window.
        """
        full_layers = self.layers - self.sliding_layers - self.stateless_layers
        windowed = min(tokens, self.sliding_window_tokens or 0)
        held = full_layers * tokens + self.sliding_layers * windowed
        return int(held * self.attention.numbers_per_token_and_layer * bytes_of(precision))

    def weight_bytes(self, precision: Precision | None = None) -> int:
        """Bytes of all weights when every one is stored in ``precision`` (default: as published)."""
        return int(self.parameters * bytes_of(precision or self.precision))
