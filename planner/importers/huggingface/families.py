"""What the ``model_type`` of a configuration implies and the configuration does not say.

From the model classes of huggingface/transformers (4.57 and 5.x), vLLM's (0.19) where transformers has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from planner.errors import nearest
from planner.importers.huggingface.reading import Config

__all__ = ["FAMILIES", "Family", "family_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family of architectures.

    Attributes:
        qkv_bias: query, key and value projections have a bias whatever the configuration says.
        head_norm: queries and keys are normed head by head.
        gated: the feed-forward layer has a gate beside its two matrices.
        tied: the output head is the embedding where nothing is said.
        windowed: ``sliding_window`` alone makes every layer a sliding-window layer.
        all_experts: every layer is a mixture of experts, as wide as ``intermediate_size``.
        latent: attention keeps a latent (MLA) where ``kv_lora_rank`` is given.
        expert_bias: experts have a bias for each of their outputs.
        norms: norms per layer.
    """

    qkv_bias: bool = False
    head_norm: bool = False
    gated: bool = True
    tied: bool = False
    windowed: bool = False
    all_experts: bool = False
    latent: bool = False
    expert_bias: bool = False
    norms: int = 2


_PLAIN: Final = Family()
_QWEN3: Final = Family(head_norm=True)
_LATENT: Final = Family(latent=True)
_GEMMA: Final = Family(tied=True, norms=4)

FAMILIES: Final = MappingProxyType(
    {
        "llama": _PLAIN,
        "llama4": _PLAIN,
        "llama4_text": _PLAIN,
        "smollm3": Family(tied=True),
        "seed_oss": Family(qkv_bias=True),
        "olmo2": Family(head_norm=True),
        "granite": _PLAIN,
        "phi3": Family(windowed=True),
        "mistral": Family(windowed=True),
        "ministral3": Family(windowed=True),
        "mixtral": Family(windowed=True, all_experts=True),
        "qwen2": Family(qkv_bias=True),
        "qwen2_moe": Family(qkv_bias=True),
        "qwen2_vl_text": Family(qkv_bias=True),
        "qwen2_5_vl_text": Family(qkv_bias=True),
        "qwen3": _QWEN3,
        "qwen3_moe": _QWEN3,
        "qwen3_vl_text": _QWEN3,
        "qwen3_vl_moe_text": _QWEN3,
        "qwen3_next": _QWEN3,
        "qwen3_5": _QWEN3,
        "qwen3_5_text": _QWEN3,
        "qwen3_5_moe": _QWEN3,
        "qwen3_5_moe_text": _QWEN3,
        "mimo": Family(qkv_bias=True),
        "mimo_v2_flash": _PLAIN,
        "minimax_m2": Family(head_norm=True, all_experts=True),
        "glm4_moe": Family(head_norm=False),
        "deepseek_v2": _LATENT,
        "deepseek_v3": _LATENT,
        "deepseek_v32": _LATENT,
        "kimi_k2": _LATENT,
        "glm_moe_dsa": _LATENT,
        "gpt_oss": Family(all_experts=True, expert_bias=True),
        "gemma": Family(tied=True),
        "gemma2": _GEMMA,
        "gemma3_text": Family(tied=True, head_norm=True, norms=4),
        "gemma4_text": Family(tied=True, head_norm=True, norms=4),
        "jamba": Family(tied=True),
        "nemotron_h": Family(gated=False, norms=1),
    }
)


def family_of(config: Config) -> Family:
    """The family of a configuration; one that is not known is a finding, and read as if it were plain."""
    name = config.text("model_type")
    if name is None:
        config.find("model_type", "nothing", allowed="a text; this field is needed")
    elif name not in FAMILIES:
        known = ", ".join(FAMILIES)
        config.find(
            "model_type", repr(name[:60]), allowed=f"one of {known}", suggestion=nearest(name, FAMILIES)
        )
    return FAMILIES.get(name or "", _PLAIN)
