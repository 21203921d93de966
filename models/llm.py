"""LLMs as the planner sees them: weights, attention, and the KV cache that one token needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from models.ids import LlmId
from models.units import Bytes, Count, PositiveCount, TokenCount
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
    value_head_dim: PositiveCount | None = Field(
        None,
        description="numbers of a value where they are not those of a key (v_head_dim); None: as head_dim",
    )

    @model_serializer(mode="wrap")
    def _with_kind(self, write: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a type would stand for the schema
        """The fields, and the kind also where defaults are left out: by it they are read again."""
        return {"kind": self.kind, **write(self)}

    @property
    def numbers_per_token_and_head(self) -> int:
        """Numbers kept per token, layer and KV head: one key and one value."""
        return self.head_dim + (self.value_head_dim or self.head_dim)

    @property
    def numbers_per_token_and_layer(self) -> int:
        """Numbers kept per token and layer: one key and one value of every KV head."""
        return self.kv_heads * self.numbers_per_token_and_head

    @property
    def index_bytes_per_token_and_layer(self) -> int:
        """Bytes of an index: there is none."""
        return 0


class LatentAttention(Value):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, 2.1): one latent and one rotary key are kept."""

    kind: Literal["mla"] = Field("mla", description="multi-head latent attention")
    kv_lora_rank: PositiveCount = Field(
        description="numbers of the compressed latent (kv_lora_rank of the configuration)"
    )
    rope_head_dim: PositiveCount = Field(
        description="numbers of the shared rotary key (qk_rope_head_dim of the configuration)"
    )
    index_head_dim: Count = Field(
        0,
        le=10**6,
        description="numbers of the key of a sparse-attention index (index_head_dim of the configuration); 0: none",
    )
    index_layers: PositiveCount | None = Field(
        None, le=10**6, description="layers that keep an index of their own; None: all of full attention"
    )

    @model_serializer(mode="wrap")
    def _with_kind(self, write: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a type would stand for the schema
        """The fields, and the kind also where defaults are left out: by it they are read again."""
        return {"kind": self.kind, **write(self)}

    @property
    def numbers_per_token_and_layer(self) -> int:
        """Numbers kept per token and layer: the compressed latent and the shared rotary key."""
        return self.kv_lora_rank + self.rope_head_dim

    @property
    def index_bytes_per_token_and_layer(self) -> int:
        """Bytes of the index per token and layer, whatever the precision of the cache.

        The index of DeepSeek-V3.2 (arXiv 2512.02556, 2.1) keeps one 8-bit key with a 32-bit scale per 128 numbers.
        """
        return self.index_head_dim + 4 * -(-self.index_head_dim // 128)


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
    expert_size: PositiveCount | None = Field(
        None,
        le=10**7,
        description="width of one routed expert (moe_intermediate_size of the configuration); None: unknown",
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
    sliding_attention: GroupedQueryAttention | None = Field(
        None, description="heads of the sliding-window layers where they differ; None: as attention"
    )
    stateless_layers: Count = Field(0, description="layers that keep no KV cache (linear attention, Mamba)")
    state_bytes_per_sequence: Bytes = Field(
        0,
        description="fixed state that one sequence keeps over all those layers together, whatever its length, bytes",
    )
    moe: Moe | None = Field(None, description="experts; None: dense")
    hidden_size: PositiveCount | None = Field(
        None, description="width of the hidden state (hidden_size of the configuration); None: unknown"
    )
    feed_forward_size: PositiveCount | None = Field(
        None,
        le=10**7,
        description="width of its dense feed-forward layers (intermediate_size of the configuration); None: unknown or none",
    )
    query_heads: PositiveCount | None = Field(
        None, le=10**5, description="query heads (num_attention_heads of the configuration); None: unknown"
    )
    vocabulary: PositiveCount | None = Field(
        None, description="tokens it knows (vocab_size of the configuration); None: unknown"
    )
    max_context_tokens: TokenCount | None = Field(
        None, description="longest input and output together, tokens; None: unknown"
    )
    precision: Precision = Field(Precision.BF16, description="precision of the published weights")
    wide_parameters: PositiveCount | None = Field(
        None,
        le=10**14,
        description="parameters that stay at 16 bit where the others are stored in fewer; None: embedding and output head",
    )
    weight_bits: float | None = Field(
        None,
        gt=0,
        le=64,
        description="bits of one published weight with its share of the scales; None: as usual for the precision",
    )
    opaque: bool = Field(
        False,
        description="only its name is known: no other figure here means anything, and memory is not checked "
        "(for LLMs whose replicas are rated by what was measured)",
    )
    aliases: tuple[str, ...] = Field((), description="other names, e.g. the repository the weights live in")

    @model_validator(mode="before")
    @classmethod
    def _opaque_needs_no_shape(cls, data: Any) -> Any:  # noqa: ANN401 - whatever is to be validated
        """Figures that must be there for every other LLM; none of them is read of an opaque one."""
        if not isinstance(data, dict) or data.get("opaque") is not True:
            return data
        return {
            "parameters": 1,
            "layers": 1,
            "attention": {"kind": "gqa", "kv_heads": 1, "head_dim": 1},
        } | data

    @model_validator(mode="after")
    def _layers_add_up(self) -> Self:
        if self.sliding_layers + self.stateless_layers > self.layers:
            raise ValueError("sliding_layers and stateless_layers together exceed layers")
        if self.sliding_layers and self.sliding_window_tokens is None:
            raise ValueError("sliding_layers needs sliding_window_tokens")
        if self.state_bytes_per_sequence and not self.stateless_layers:
            raise ValueError("state_bytes_per_sequence needs stateless_layers")
        if self.wide_parameters is not None and self.wide_parameters > self.parameters:
            raise ValueError("wide_parameters exceeds parameters")
        if self.index_layers > self.full_layers:
            raise ValueError("index_layers exceeds the layers of full attention")
        return self

    def kv_bytes(self, tokens: int, precision: Precision = Precision.BF16) -> int:
        """Bytes of KV cache that one sequence of ``tokens`` tokens holds over all layers.

        Sliding-window layers hold at most their window, stateless layers their fixed state. Linear in the
        tokens where there is neither.
        """
        full = self.full_layers * tokens
        sliding = self.sliding_layers * min(tokens, self.sliding_window_tokens or 0)
        numbers = full * self.attention.numbers_per_token_and_layer
        numbers += sliding * (self.sliding_attention or self.attention).numbers_per_token_and_layer
        index = self.index_layers * tokens * self.attention.index_bytes_per_token_and_layer
        return int(numbers * bytes_of(precision)) + index + self.state_bytes_per_sequence

    @property
    def index_layers(self) -> int:
        """Layers that keep an index of their own."""
        if isinstance(self.attention, LatentAttention) and self.attention.index_layers is not None:
            return self.attention.index_layers
        return self.full_layers

    @property
    def full_layers(self) -> int:
        """Layers that keep every token."""
        return self.layers - self.sliding_layers - self.stateless_layers

    def weight_bytes(self, precision: Precision | None = None) -> int:
        """Bytes of all weights when every one is stored in ``precision`` (default: as published)."""
        return int(self.parameters * bytes_of(precision or self.precision))
