"""The weight matrices of an LLM, one by one, from the shapes in its configuration.

Counts follow the model classes of huggingface/transformers: projections with their biases, norms, routers,
convolutions and the small vectors of state-space layers. Heads of multi-token prediction and towers for images or
sound are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from planner.importers.huggingface.families import Family
from planner.importers.huggingface.layers import Feed, Mixer, experts_of, feeds, mixers
from planner.importers.huggingface.reading import Config

__all__ = ["Kind", "Part", "Shapes", "parts", "shapes_of"]


class Kind(StrEnum):
    """What a matrix is for, as far as memory and quantization care."""

    EMBEDDING = "embedding"
    HEAD = "head"
    LINEAR = "linear"
    ROUTED = "routed"
    SMALL = "small"


@dataclass(frozen=True, slots=True)
class Part:
    """One matrix, or all routed experts of a layer.

    Attributes:
        module: name as checkpoints have it, from ``layers.`` on.
        kind: what it is for.
        parameters: numbers in it.
    """

    module: str
    kind: Kind
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Shapes of an LLM, as the configuration and its family say them."""

    config: Config
    family: Family
    hidden: int
    vocabulary: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    dense: int
    experts: int
    visited: int
    expert: int
    shared: int
    mixers: tuple[Mixer, ...]
    feeds: tuple[Feed, ...]

    @property
    def is_latent(self) -> bool:
        """Whether attention keeps a latent (MLA)."""
        return self.family.latent and self.config.has("kv_lora_rank")

    @property
    def expert_matrices(self) -> int:
        """Matrices of a feed-forward layer."""
        return 3 if self.family.gated else 2

    @property
    def routed_of_a_layer(self) -> int:
        """Parameters of the routed experts of one layer."""
        bias = 0
        if self.family.expert_bias:
            bias = 2 * self.expert + self.hidden
        width = self.config.count("moe_latent_size") or self.hidden
        return self.experts * (self.expert_matrices * width * self.expert + bias)

    def module(self, usual: str) -> str:
        """What the family calls a block of a layer."""
        return "mixer" if self.config.text("model_type") == "nemotron_h" else usual


def shapes_of(config: Config, family: Family, layers: int) -> Shapes:
    """Read the shapes; what is wrong joins the findings."""
    hidden, heads = config.need("hidden_size", most=10**6), config.need("num_attention_heads", most=10**5)
    head_dim = config.count("head_dim", "attention_head_dim", most=10**5) or max(1, hidden // heads)
    experts = experts_of(config) or 0
    width = config.count("moe_intermediate_size", "intermediate_size", most=10**7) if experts else 0
    all_feeds = tuple(feeds(config, family, layers))
    kinds = {*all_feeds}
    dense = config.count("intermediate_size_mlp", "intermediate_size", most=10**7)
    if dense is None and kinds & {Feed.DENSE, Feed.BOTH}:
        config.find("intermediate_size", "nothing", allowed="a whole number; this field is needed")
    elif experts and width is None:
        config.find(
            "moe_intermediate_size",
            "nothing",
            allowed="the width of an expert",
            follows=("intermediate_size",),
        )
    return Shapes(
        config=config,
        family=family,
        hidden=hidden,
        vocabulary=config.need("vocab_size", most=10**8),
        layers=layers,
        heads=heads,
        kv_heads=config.count("num_key_value_heads", most=10**5) or heads,
        head_dim=head_dim,
        value_dim=config.count("v_head_dim", most=10**5) or head_dim,
        dense=(dense or 0) if kinds & {Feed.DENSE, Feed.BOTH} else 0,
        experts=experts,
        visited=_visited(config, experts),
        expert=width or 0,
        shared=_shared(config, width or 0) if experts else 0,
        mixers=tuple(mixers(config, family, layers)),
        feeds=all_feeds,
    )


def parts(shapes: Shapes) -> Iterator[Part]:
    """Every matrix of the LLM."""
    tied = shapes.config.flag("tie_word_embeddings", shapes.family.tied)
    yield Part("embed_tokens", Kind.EMBEDDING, shapes.vocabulary * shapes.hidden)
    if not tied:
        yield Part("lm_head", Kind.HEAD, shapes.vocabulary * shapes.hidden)
    yield Part("norm", Kind.SMALL, shapes.hidden)
    for layer, (mixer, feed) in enumerate(zip(shapes.mixers, shapes.feeds, strict=True)):
        name = f"layers.{layer}"
        yield Part(f"{name}.input_layernorm", Kind.SMALL, shapes.family.norms * shapes.hidden)
        yield from _mixer(shapes, mixer, name)
        yield from _feed(shapes, feed, name)


def _visited(config: Config, experts: int) -> int:
    if not experts:
        return 0
    visited = config.need("num_experts_per_tok", "experts_per_token", "top_k_experts", most=10**6)
    if visited > experts:
        config.find("num_experts_per_tok", str(visited), allowed=f"at most the {experts} experts")
    return visited


def _shared(config: Config, width: int) -> int:
    """Width of all shared experts together."""
    stated = config.count(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        least=0,
        most=10**7,
    )
    if stated is not None:
        return stated
    if (config.text("model_type") or "").startswith("llama4"):
        return width
    return (config.count("n_shared_experts", least=0, most=10**4) or 0) * width


def _mixer(shapes: Shapes, mixer: Mixer, name: str) -> Iterator[Part]:
    match mixer:
        case Mixer.FULL | Mixer.SLIDING if shapes.is_latent:
            yield from _latent(shapes, f"{name}.self_attn")
        case Mixer.FULL | Mixer.SLIDING:
            yield from _attention(
                shapes, f"{name}.{shapes.module('self_attn')}", sliding=mixer is Mixer.SLIDING
            )
        case Mixer.DELTA:
            yield from _delta(shapes, f"{name}.linear_attn")
        case Mixer.MAMBA:
            yield from _mamba(shapes, f"{name}.{shapes.module('mamba')}")
        case Mixer.NONE:
            return


def _attention(shapes: Shapes, name: str, *, sliding: bool) -> Iterator[Part]:
    """Grouped-query attention; heads of sliding-window and of full layers may differ."""
    config, h, n = shapes.config, shapes.hidden, shapes.heads
    g, d, v = shapes.kv_heads, shapes.head_dim, shapes.value_dim
    if sliding and config.has("swa_num_key_value_heads"):
        g = config.count("swa_num_key_value_heads") or g
        d, v = config.count("swa_head_dim") or d, config.count("swa_v_head_dim") or v
        n = config.count("swa_num_attention_heads") or n
    if not sliding and config.has("global_head_dim"):
        d = v = config.count("global_head_dim") or d
        g = config.count("num_global_key_value_heads") or g
    everywhere = config.flag("attention_bias", False)
    bias = everywhere or shapes.family.qkv_bias
    gate = 2 if config.flag("attn_output_gate", config.text("model_type") == "qwen3_next") else 1
    shares_values = not sliding and config.flag("attention_k_eq_v", False)
    yield Part(f"{name}.q_proj", Kind.LINEAR, gate * n * d * (h + bias))
    yield Part(f"{name}.k_proj", Kind.LINEAR, g * d * (h + bias))
    if not shares_values:
        yield Part(f"{name}.v_proj", Kind.LINEAR, g * v * (h + bias))
    biased_output = everywhere and config.text("model_type") != "glm4_moe"
    yield Part(f"{name}.o_proj", Kind.LINEAR, n * v * h + (h if biased_output else 0))
    if shapes.family.head_norm or config.flag("use_qk_norm", False):
        yield Part(f"{name}.q_norm", Kind.SMALL, 2 * d)
    if config.text("model_type") == "gpt_oss":
        yield Part(f"{name}.sinks", Kind.SMALL, n)


def _latent(shapes: Shapes, name: str) -> Iterator[Part]:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, 2.1), with an index where there is one."""
    config, h, n = shapes.config, shapes.hidden, shapes.heads
    latent, rotary = config.need("kv_lora_rank"), config.need("qk_rope_head_dim")
    plain, value = config.need("qk_nope_head_dim"), config.need("v_head_dim")
    rank = config.count("q_lora_rank")
    if rank is None:
        yield Part(f"{name}.q_proj", Kind.LINEAR, h * n * (plain + rotary))
    else:
        yield Part(f"{name}.q_a_proj", Kind.LINEAR, h * rank)
        yield Part(f"{name}.q_b_proj", Kind.LINEAR, rank * n * (plain + rotary))
        yield Part(f"{name}.q_a_layernorm", Kind.SMALL, rank)
    yield Part(f"{name}.kv_a_proj_with_mqa", Kind.LINEAR, h * (latent + rotary))
    yield Part(f"{name}.kv_a_layernorm", Kind.SMALL, latent)
    yield Part(f"{name}.kv_b_proj", Kind.LINEAR, latent * n * (plain + value))
    yield Part(f"{name}.o_proj", Kind.LINEAR, n * value * h)
    if config.has("index_head_dim"):
        heads, dim = config.need("index_n_heads"), config.need("index_head_dim")
        yield Part(f"{name}.indexer.wq_b", Kind.LINEAR, (rank or h) * heads * dim)
        yield Part(f"{name}.indexer.wk", Kind.LINEAR, h * dim)
        yield Part(f"{name}.indexer.weights_proj", Kind.SMALL, h * heads + 2 * dim)


def _delta(shapes: Shapes, name: str) -> Iterator[Part]:
    """Gated delta net (Qwen3-Next and later)."""
    config, h = shapes.config, shapes.hidden
    keys = config.need("linear_num_key_heads") * config.need("linear_key_head_dim")
    heads = config.need("linear_num_value_heads")
    values = heads * config.need("linear_value_head_dim")
    if config.text("model_type") == "qwen3_next":
        yield Part(f"{name}.in_proj_qkvz", Kind.LINEAR, h * 2 * (keys + values))
        yield Part(f"{name}.in_proj_ba", Kind.LINEAR, h * 2 * heads)
    else:
        yield Part(f"{name}.in_proj_qkv", Kind.LINEAR, h * (2 * keys + values))
        yield Part(f"{name}.in_proj_z", Kind.LINEAR, h * values)
        yield from (Part(f"{name}.in_proj_{gate}", Kind.LINEAR, h * heads) for gate in "ab")
    kernel = config.need("linear_conv_kernel_dim")
    small = (2 * keys + values) * kernel + 2 * heads + config.need("linear_value_head_dim")
    yield Part(f"{name}.conv1d", Kind.SMALL, small)
    yield Part(f"{name}.out_proj", Kind.LINEAR, values * h)


def _mamba(shapes: Shapes, name: str) -> Iterator[Part]:
    """A state-space layer: Mamba-2 where it has heads, else Mamba as Jamba builds it."""
    config, h = shapes.config, shapes.hidden
    if config.has("mamba_num_heads"):
        heads, state = config.need("mamba_num_heads"), config.need("ssm_state_size")
        inner = heads * config.need("mamba_head_dim")
        groups = (config.count("n_groups") or 1) * state
        yield Part(f"{name}.in_proj", Kind.LINEAR, h * (2 * inner + 2 * groups + heads))
        kernel = config.count("conv_kernel") or 4
        small = (inner + 2 * groups) * (kernel + 1) + 3 * heads + inner
        yield Part(f"{name}.conv1d", Kind.SMALL, small)
        yield Part(f"{name}.out_proj", Kind.LINEAR, inner * h)
        return
    inner, state = (config.count("mamba_expand") or 2) * h, config.count("mamba_d_state") or 16
    rank = config.count("mamba_dt_rank") or -(-h // 16)
    yield Part(f"{name}.in_proj", Kind.LINEAR, 2 * h * inner)
    yield Part(f"{name}.x_proj", Kind.LINEAR, inner * (rank + 2 * state))
    yield Part(f"{name}.dt_proj", Kind.LINEAR, rank * inner + inner)
    kernel = config.count("mamba_d_conv") or 4
    yield Part(f"{name}.conv1d", Kind.SMALL, inner * (kernel + 2 + state) + rank + 2 * state)
    yield Part(f"{name}.out_proj", Kind.LINEAR, inner * h)


def _feed(shapes: Shapes, feed: Feed, layer: str) -> Iterator[Part]:
    name = f"{layer}.{shapes.module('mlp')}"
    if feed in {Feed.DENSE, Feed.BOTH}:
        yield from _dense(shapes, name)
    if feed in {Feed.EXPERTS, Feed.BOTH}:
        # Beside a dense layer, experts and router are blocks of their own.
        yield from _experts(shapes, layer if feed is Feed.BOTH else name)


def _dense(shapes: Shapes, name: str) -> Iterator[Part]:
    h, bias = shapes.hidden, shapes.config.flag("mlp_bias", False)
    for matrix in _matrices(shapes):
        extra = 0 if not bias else h if matrix == "down_proj" else shapes.dense
        yield Part(f"{name}.{matrix}", Kind.LINEAR, h * shapes.dense + extra)


def _experts(shapes: Shapes, name: str) -> Iterator[Part]:
    h = shapes.hidden
    router = (h + _has_router_bias(shapes)) * shapes.experts
    yield Part(f"{name}.gate", Kind.SMALL, router)
    yield Part(f"{name}.experts", Kind.ROUTED, shapes.routed_of_a_layer)
    latent = shapes.config.count("moe_latent_size")
    if latent is not None:
        yield from (Part(f"{name}.fc{side}_latent_proj", Kind.LINEAR, h * latent) for side in (1, 2))
    if shapes.shared:
        for matrix in _matrices(shapes):
            yield Part(f"{name}.shared_experts.{matrix}", Kind.LINEAR, h * shapes.shared)
    if shapes.shared and shapes.config.has("shared_expert_intermediate_size"):
        yield Part(f"{name}.shared_expert_gate", Kind.SMALL, h)


def _has_router_bias(shapes: Shapes) -> bool:
    """Whether a router keeps one number more per expert: a bias, or the correction that balances load."""
    config = shapes.config
    return (
        shapes.family.expert_bias
        or config.text("topk_method") == "noaux_tc"
        or config.text("model_type") in {"glm4_moe", "nemotron_h"}
        or config.flag("use_routing_bias", False)
    )


def _matrices(shapes: Shapes) -> tuple[str, ...]:
    return ("gate_proj", "up_proj", "down_proj") if shapes.family.gated else ("up_proj", "down_proj")
