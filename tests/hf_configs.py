"""Figures of published ``config.json`` files, typed in; and builders that write them to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

__all__ = ["CONFIGS", "write_config"]

_LATENT: Final = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def _gqa(kind: str, layers: int, hidden: int, heads: int, kv_heads: int, **fields: Any) -> dict[str, Any]:
    shapes = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
    }
    return {"model_type": kind, "torch_dtype": "bfloat16"} | shapes | fields


CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "Llama-3.1-8B": _gqa("llama", 32, 4096, 32, 8, intermediate_size=14_336, vocab_size=128_256, max_position_embeddings=131_072),
    "Llama-3.1-70B": _gqa("llama", 80, 8192, 64, 8, intermediate_size=28_672, vocab_size=128_256),
    "Mistral-7B-v0.3": _gqa("mistral", 32, 4096, 32, 8, intermediate_size=14_336, vocab_size=32_768, sliding_window=None),
    "Mixtral-8x7B": _gqa("mixtral", 32, 4096, 32, 8, intermediate_size=14_336, vocab_size=32_000, num_local_experts=8, num_experts_per_tok=2),
    "Qwen2.5-7B": _gqa("qwen2", 28, 3584, 28, 4, intermediate_size=18_944, vocab_size=152_064, use_sliding_window=False, sliding_window=131_072),
    "Qwen2.5-14B": _gqa("qwen2", 48, 5120, 40, 8, intermediate_size=13_824, vocab_size=152_064),
    "Qwen3-8B": _gqa("qwen3", 36, 4096, 32, 8, head_dim=128, intermediate_size=12_288, vocab_size=151_936),
    "Qwen3-0.6B": _gqa("qwen3", 28, 1024, 16, 8, head_dim=128, intermediate_size=3072, vocab_size=151_936, tie_word_embeddings=True),
    "Qwen3-30B-A3B": _gqa("qwen3_moe", 48, 2048, 32, 4, head_dim=128, intermediate_size=6144, vocab_size=151_936,
                          num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[]),
    "Qwen3-235B-A22B": _gqa("qwen3_moe", 94, 4096, 64, 4, head_dim=128, intermediate_size=12_288, vocab_size=151_936,
                            num_experts=128, num_experts_per_tok=8, moe_intermediate_size=1536),
    "gpt-oss-20b": _gqa("gpt_oss", 24, 2880, 64, 8, head_dim=64, intermediate_size=2880, vocab_size=201_088, attention_bias=True,
                        num_local_experts=32, num_experts_per_tok=4, sliding_window=128,
                        layer_types=["sliding_attention", "full_attention"] * 12,
                        quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}),
    "gpt-oss-120b": _gqa("gpt_oss", 36, 2880, 64, 8, head_dim=64, intermediate_size=2880, vocab_size=201_088, attention_bias=True,
                         num_local_experts=128, num_experts_per_tok=4, sliding_window=128,
                         layer_types=["sliding_attention", "full_attention"] * 18),
    "DeepSeek-V3": _gqa("deepseek_v3", 61, 7168, 128, 128, intermediate_size=18_432, vocab_size=129_280, n_routed_experts=256,
                        num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=1, first_k_dense_replace=3, topk_method="noaux_tc",
                        num_nextn_predict_layers=1, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]}, **_LATENT),
    "Gemma-2-9B": _gqa("gemma2", 42, 3584, 16, 8, head_dim=256, intermediate_size=14_336, vocab_size=256_000, sliding_window=4096),
    "Gemma-3-27B": {"model_type": "gemma3", "vision_config": {"hidden_size": 1152},
                    "text_config": _gqa("gemma3_text", 62, 5376, 32, 16, head_dim=128, intermediate_size=21_504, vocab_size=262_208, sliding_window=1024, sliding_window_pattern=6)},
    "Gemma-7B": _gqa("gemma", 28, 3072, 16, 16, head_dim=256, intermediate_size=24_576, vocab_size=256_000),
    "Phi-4": _gqa("phi3", 40, 5120, 40, 10, intermediate_size=17_920, vocab_size=100_352, sliding_window=None),
    "Qwen3-Next-80B-A3B": _gqa("qwen3_next", 48, 2048, 16, 2, head_dim=256, intermediate_size=5120, vocab_size=151_936, num_experts=512,
                               num_experts_per_tok=10, moe_intermediate_size=512, shared_expert_intermediate_size=512, full_attention_interval=4,
                               linear_num_key_heads=16, linear_key_head_dim=128, linear_num_value_heads=32, linear_value_head_dim=128, linear_conv_kernel_dim=4),
    "Jamba-v0.1": _gqa("jamba", 32, 4096, 32, 8, intermediate_size=14_336, vocab_size=65_536, attn_layer_period=8, attn_layer_offset=4,
                       expert_layer_period=2, expert_layer_offset=1, num_experts=16, num_experts_per_tok=2, mamba_d_state=16,
                       mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=256, tie_word_embeddings=False),
    "Nemotron-3-Nano-30B-A3B": _gqa("nemotron_h", 52, 2688, 32, 2, head_dim=128, intermediate_size=1856, vocab_size=131_072,
                                    hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
                                    mamba_num_heads=64, mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, n_routed_experts=128,
                                    num_experts_per_tok=6, moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712, n_shared_experts=1,
                                    mamba_ssm_cache_dtype="float32", time_step_limit=[0.0, float("inf")]),
}  # fmt: skip


def write_config(folder: Path, config: Any, *, beside: Any = None, name: str = "config.json") -> Path:
    """Write a configuration, and ModelOpt's file beside it; the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    if beside is not None:
        (folder / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    return path
