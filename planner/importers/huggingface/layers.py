"""Which layer is what: how it mixes tokens, and which feed-forward layer follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

from planner.importers.huggingface.families import Family
from planner.importers.huggingface.reading import LAYERS, Config

__all__ = ["MOST_LAYERS", "Feed", "Mixer", "experts_of", "feeds", "layers_of", "mixers"]

MOST_LAYERS: Final = 10_000


class Mixer(StrEnum):
    """How a layer mixes tokens, and hence what it keeps of them."""

    FULL = "full"
    SLIDING = "sliding"
    DELTA = "delta"
    MAMBA = "mamba"
    NONE = "none"


class Feed(StrEnum):
    """Which feed-forward layer a layer has."""

    DENSE = "dense"
    EXPERTS = "experts"
    BOTH = "both"
    NONE = "none"


_TYPES: Final = {
    "full_attention": Mixer.FULL,
    "deepseek_sparse_attention": Mixer.FULL,
    "attention": Mixer.FULL,
    "sliding_attention": Mixer.SLIDING,
    "chunked_attention": Mixer.SLIDING,
    "linear_attention": Mixer.DELTA,
    "mamba": Mixer.MAMBA,
    "moe": Mixer.NONE,
    "mlp": Mixer.NONE,
}
_LETTERS: Final = {"M": Mixer.MAMBA, "*": Mixer.FULL, "-": Mixer.NONE, "E": Mixer.NONE}
_LETTER_FEEDS: Final = {"-": Feed.DENSE, "E": Feed.EXPERTS}
_TYPE_FEEDS: Final = {"mlp": Feed.DENSE, "moe": Feed.EXPERTS}
_EXPERTS: Final = ("num_local_experts", "num_experts", "n_routed_experts")


def layers_of(config: Config) -> int:
    """How many layers there are; where nothing says so, as many as are listed."""
    for name in ("layers_block_type", "layer_types"):
        listed = config.items(name) if not config.has(LAYERS) else None
        if listed and len(listed) <= MOST_LAYERS:
            return len(listed)
    return config.need(LAYERS, most=MOST_LAYERS)


def experts_of(config: Config) -> int | None:
    """Routed experts of a layer; None: the LLM is dense."""
    count = config.count(*_EXPERTS, most=10**6, least=0)
    return count or None


def mixers(config: Config, family: Family, layers: int) -> Sequence[Mixer]:
    """How each layer mixes tokens."""
    said = (say(config, layers) for say in (_by_letters, _by_types, _by_period, _by_pattern))
    listed = next((each for each in said if each is not None), None)
    return _by_family(config, family, layers) if listed is None else listed


def _by_family(config: Config, family: Family, layers: int) -> Sequence[Mixer]:
    """Where no layer is named: what the family does."""
    window = config.count("sliding_window")
    kind = config.text("model_type") or ""
    if kind.startswith("gemma3"):
        return _every(config.count("sliding_window_pattern") or 6, layers)
    if kind == "gemma2":
        return [Mixer.FULL if layer % 2 else Mixer.SLIDING for layer in range(layers)]
    if kind.startswith("llama4") and config.has("attention_chunk_size"):
        return _llama4(config, layers)
    if window and config.flag("use_sliding_window", False):
        first = config.count("max_window_layers", least=0)
        return [Mixer.SLIDING if layer >= (first or 0) else Mixer.FULL for layer in range(layers)]
    return [Mixer.SLIDING if window and family.windowed else Mixer.FULL] * layers


def feeds(config: Config, family: Family, layers: int) -> Sequence[Feed]:
    """Which feed-forward layer each layer has."""
    named = _named_feeds(config, layers)
    if named is not None:
        return named
    if experts_of(config) is None or not config.flag("enable_moe_block", True):
        return [Feed.DENSE] * layers
    if config.has("enable_moe_block"):
        return [Feed.BOTH] * layers
    sparse = _is_sparse(config, layers)
    return [Feed.EXPERTS if family.all_experts or sparse(layer) else Feed.DENSE for layer in range(layers)]


def _named_feeds(config: Config, layers: int) -> Sequence[Feed] | None:
    """A letter or a name for each layer."""
    letters = config.text("hybrid_override_pattern")
    if letters is not None:
        return [_LETTER_FEEDS.get(letter, Feed.NONE) for letter in letters.ljust(layers, "M")[:layers]]
    types = config.words("layers_block_type", layers)
    if types is not None and {"moe", "mlp"} & set(types):
        return [_TYPE_FEEDS.get(name, Feed.NONE) for name in types]
    named = config.words("mlp_layer_types", layers)
    return None if named is None else [Feed.EXPERTS if name == "sparse" else Feed.DENSE for name in named]


def _is_sparse(config: Config, layers: int) -> Callable[[int], bool]:
    """Whether a layer is a mixture of experts."""
    if isinstance(config.data.get("moe_layer_freq"), list):
        flags = config.items("moe_layer_freq", layers) or [1] * layers
        return lambda layer: bool(flags[layer])
    if config.has("expert_layer_period"):
        period = config.count("expert_layer_period") or 1
        offset = config.count("expert_layer_offset", least=0) or 0
        return lambda layer: layer % period == offset
    dense = {item for item in config.items("mlp_only_layers") or () if isinstance(item, int)}
    step = config.count("decoder_sparse_step", "interleave_moe_layer_step") or 1
    first = config.count("first_k_dense_replace", least=0) or 0
    every = config.count("moe_layer_freq") or 1
    return lambda layer: (
        layer not in dense and (layer + 1) % step == 0 and layer >= first and layer % every == 0
    )


def _by_letters(config: Config, layers: int) -> Sequence[Mixer] | None:
    """Nemotron-H: one letter for each layer."""
    letters = config.text("hybrid_override_pattern")
    if letters is None:
        return None
    if len(letters) != layers or set(letters) - set(_LETTERS):
        allowed = f"{layers} letters of M, *, - and E"
        config.find("hybrid_override_pattern", f"{len(letters)} letters", allowed=allowed, follows=(LAYERS,))
        return [Mixer.FULL] * layers
    return [_LETTERS[letter] for letter in letters]


def _by_types(config: Config, layers: int) -> Sequence[Mixer] | None:
    """A name for each layer."""
    name = next((name for name in ("layer_types", "layers_block_type") if config.has(name)), None)
    types = None if name is None else config.words(name, layers)
    if name is None or types is None:
        return None
    for unknown in sorted(set(types) - set(_TYPES)):
        config.find(name, repr(unknown[:60]), allowed=", ".join(_TYPES))
    return [_TYPES.get(each, Mixer.FULL) for each in types]


def _by_period(config: Config, layers: int) -> Sequence[Mixer] | None:
    """Jamba: attention every so many layers; Qwen3-Next: full attention every so many."""
    if config.has("attn_layer_period"):
        period = config.count("attn_layer_period") or 1
        offset = config.count("attn_layer_offset", least=0) or 0
        return [Mixer.FULL if layer % period == offset else Mixer.MAMBA for layer in range(layers)]
    if config.has("full_attention_interval"):
        return _every(config.count("full_attention_interval") or 1, layers, Mixer.DELTA)
    return None


def _by_pattern(config: Config, layers: int) -> Sequence[Mixer] | None:
    """MiMo: 1 for a sliding-window layer, 0 for a full one."""
    flags = config.items("hybrid_layer_pattern", layers)
    return None if flags is None else [Mixer.SLIDING if _is_one(flag) else Mixer.FULL for flag in flags]


def _llama4(config: Config, layers: int) -> Sequence[Mixer]:
    """Chunks where positions are rotary; every fourth layer has none, unless a list says otherwise."""
    rotary = config.items("no_rope_layers")
    if rotary:
        listed = config.items("no_rope_layers", layers) or [1] * layers
        return [Mixer.SLIDING if _is_one(flag) else Mixer.FULL for flag in listed]
    return _every(4, layers)


def _every(period: int, layers: int, other: Mixer = Mixer.SLIDING) -> Sequence[Mixer]:
    """Full attention in every ``period``-th layer."""
    return [Mixer.FULL if (layer + 1) % period == 0 else other for layer in range(layers)]


def _is_one(flag: Any) -> bool:  # noqa: ANN401 - an item of a list from a file
    return isinstance(flag, int) and flag == 1
