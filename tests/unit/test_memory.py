"""What fits beside the weights, against start-up records of vLLM and against cases worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from models.hardware import Accelerator
from models.llm import Llm, Precision
from models.variant import Parallelism, Quantization, Variant
from planner.catalog import Catalog, load_catalog
from planner.performance.memory import (
    BLOCK_TOKENS,
    RESERVE_BYTES,
    KvFit,
    kv_bytes_per_token,
    kv_capacity_tokens,
    tokens_in,
    weight_bytes_per_accelerator,
)

GIB = 2**30


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def an_llm(**fields: Any) -> Llm:
    """One billion parameters in bf16, 10 layers that keep 2 x 4 x 100 numbers: 16,000 B per token."""
    attention = {"kind": "gqa", "kv_heads": 4, "head_dim": 100}
    return Llm.model_validate(
        {"id": "one", "parameters": 10**9, "layers": 10, "attention": attention} | fields
    )


def a_variant(weights: Precision | None = None, kv: Precision = Precision.BF16, **fields: Any) -> Variant:
    degrees = {name: fields.pop(name) for name in ("tp", "pp", "dp", "ep") if name in fields}
    return Variant.model_validate(
        {
            "id": "v",
            "accelerator": "acc",
            "parallelism": Parallelism(**degrees),
            "quantization": Quantization(weights=weights, kv_cache=kv),
        }
        | fields
    )


def an_accelerator(memory_bytes: int = 10 * 10**9) -> Accelerator:
    return Accelerator.model_validate({"id": "acc", "vendor": "Acme", "memory_bytes": memory_bytes})


def fit(
    llm: Llm | None = None, memory_bytes: int = 10 * 10**9, sequence_tokens: int | None = None, **fields: Any
) -> KvFit:
    """The plain case: whole memory usable, nothing reserved."""
    variant = a_variant(**({"memory_utilization": 1.0, "activation_reserve_bytes": 0} | fields))
    return kv_capacity_tokens(
        llm or an_llm(), an_accelerator(memory_bytes), variant, sequence_tokens=sequence_tokens
    )


@pytest.mark.parametrize(
    ("llm", "shown_gib", "tokens", "off_by_blocks"),
    [
        ("Llama-3.1-8B", 54.68, 447_936, 0),
        # The record shows two decimals of a GiB; two blocks are 6 MiB of 41.57 GiB.
        ("Qwen2.5-14B", 41.57, 226_992, 2),
    ],
)
def test_kv_bytes_become_the_tokens_that_vllm_reports(
    catalog: Catalog, llm: str, shown_gib: float, tokens: int, off_by_blocks: int
) -> None:
    per_token = kv_bytes_per_token(catalog.llm(llm), a_variant())
    ours = tokens_in(int(shown_gib * GIB), per_token)
    assert abs(ours - tokens) <= off_by_blocks * BLOCK_TOKENS


@pytest.mark.parametrize(
    ("llm", "shown_gib", "tokens"), [("Llama-3.1-8B", 54.68, 447_936), ("Qwen2.5-14B", 41.57, 226_992)]
)
def test_the_default_reserve_is_on_the_safe_side_of_vllm_and_close(
    catalog: Catalog, llm: str, shown_gib: float, tokens: int
) -> None:
    ours = kv_capacity_tokens(catalog.llm(llm), catalog.accelerator("H100"), a_variant())
    assert 0.98 * tokens <= (ours.kv_tokens or 0) <= tokens
    assert 0.98 * shown_gib <= ours.kv_bytes / GIB <= shown_gib


def test_what_is_left_is_memory_less_weights_less_reserve() -> None:
    assert fit() == KvFit(weight_bytes=2 * 10**9, kv_bytes=8 * 10**9, missing_bytes=0, kv_tokens=500_000)
    assert fit(activation_reserve_bytes=10**9).kv_bytes == 7 * 10**9
    assert fit(memory_utilization=0.9).kv_bytes == 7 * 10**9
    assert fit(memory_bytes=10 * 10**9, activation_reserve_bytes=None).kv_bytes == 8 * 10**9 - RESERVE_BYTES


def test_tokens_come_in_whole_blocks() -> None:
    per_block = 16_000 * BLOCK_TOKENS
    for spare, tokens in ((per_block, 16), (2 * per_block - 1, 16), (2 * per_block, 32)):
        assert fit(memory_bytes=2 * 10**9 + spare).kv_tokens == tokens


def test_it_says_by_how_much_it_does_not_fit() -> None:
    short = fit(memory_bytes=1 * 10**9)
    assert not short.fits
    assert short.kv_tokens == 0
    assert short.kv_bytes == 0
    assert short.missing_bytes == 10**9 + 16_000 * BLOCK_TOKENS
    assert fit(memory_bytes=10**9 + short.missing_bytes).kv_tokens == BLOCK_TOKENS
    assert not fit(memory_bytes=10**9 + short.missing_bytes - 1).fits


@pytest.mark.parametrize(
    ("degrees", "tokens"),
    [
        # Two ranks: half of the weights and two of four heads each.
        ({"tp": 2}, 9 * 10**9 // 8_000),
        # Eight ranks on four heads: one head on each rank, twice over.
        ({"tp": 8}, (10**10 - 2 * 10**9 // 8) // 4_000),
        # Two stages of five layers.
        ({"pp": 2}, 9 * 10**9 // 8_000),
        # Three stages: the fullest has four layers.
        ({"pp": 3}, (10**10 - -(-2 * 10**9 // 3)) // 6_400),
        # Data-parallel ranks repeat the weights and have a cache each.
        ({"dp": 4}, 4 * 500_000),
    ],
)
def test_parallelism_splits_weights_and_cache(degrees: dict[str, int], tokens: int) -> None:
    whole = fit(**degrees).kv_tokens or 0
    ranks = degrees.get("dp", 1)
    assert whole == tokens // ranks // BLOCK_TOKENS * BLOCK_TOKENS * ranks


@pytest.mark.parametrize(
    ("precision", "weights"),
    [(Precision.FP32, 4.0e9), (Precision.FP16, 2.0e9), (Precision.FP8, 1.0e9), (Precision.INT4, 0.5625e9)],
)
def test_quantized_weights_take_less(precision: Precision, weights: float) -> None:
    assert weight_bytes_per_accelerator(an_llm(), a_variant(precision)) == weights


def test_embedding_and_head_stay_at_16_bit() -> None:
    llm = an_llm(vocabulary=100_000, hidden_size=1000)
    assert weight_bytes_per_accelerator(llm, a_variant(Precision.FP8)) == 0.8e9 + 0.2e9 * 2
    assert weight_bytes_per_accelerator(llm, a_variant()) == 2e9


def test_a_quantized_cache_holds_twice_as_much() -> None:
    assert fit(kv=Precision.FP8).kv_tokens == 1_000_000
    assert fit(kv=Precision.FP4).kv_tokens == 2_000_000


MOE = {"experts": 8, "experts_per_token": 2, "routed_parameters": 8 * 10**8}


@pytest.mark.parametrize(
    ("degrees", "weights"),
    [
        ({}, 2.0e9),
        ({"tp": 4}, 0.5e9),
        # The shared 0.2e9 parameters are repeated on each data-parallel rank, the experts are spread.
        ({"dp": 4}, 0.4e9 + 0.4e9),
        ({"dp": 4, "ep": 4}, 0.4e9 + 0.4e9),
        # Three ranks for eight experts: the fullest holds three of them.
        ({"dp": 3, "ep": 3}, 0.4e9 + 0.6e9),
        ({"tp": 2, "dp": 2, "ep": 4}, 0.2e9 + 0.4e9),
    ],
)
def test_experts_are_spread_and_the_rest_is_repeated(degrees: dict[str, int], weights: float) -> None:
    assert weight_bytes_per_accelerator(an_llm(moe=MOE), a_variant(**degrees)) == weights


def test_routed_parameters_follow_from_the_active_ones() -> None:
    # 1e9 - 0.4e9 are the six experts of eight that a token leaves alone: 0.8e9 are routed.
    counted = an_llm(moe=MOE)
    derived = an_llm(moe={"experts": 8, "experts_per_token": 2}, active_parameters=4 * 10**8)
    variant = a_variant(dp=4)
    assert weight_bytes_per_accelerator(derived, variant) == weight_bytes_per_accelerator(counted, variant)
    unknown = an_llm(moe={"experts": 8, "experts_per_token": 2})
    assert weight_bytes_per_accelerator(unknown, variant) == 2e9


def test_a_latent_is_repeated_on_every_tensor_parallel_rank() -> None:
    llm = an_llm(attention={"kind": "mla", "kv_lora_rank": 512, "rope_head_dim": 64})
    assert kv_bytes_per_token(llm, a_variant()) == kv_bytes_per_token(llm, a_variant(tp=8)) == 10 * 576 * 2


def test_published_cache_sizes_per_token(catalog: Catalog) -> None:
    sizes = {
        "Qwen3-235B-A22B": 192_512,
        "Qwen3-30B-A3B": 98_304,
        "DeepSeek-V3": 70_272,
        "gpt-oss-120b": 73_728,
    }
    assert {name: kv_bytes_per_token(catalog.llm(name), a_variant()) for name in sizes} == sizes


def test_sliding_layers_hold_no_more_than_their_window() -> None:
    llm = an_llm(sliding_layers=5, sliding_window_tokens=1000)
    assert fit(llm).kv_tokens == fit(llm, sequence_tokens=1000).kv_tokens == 500_000
    # 10,000 tokens: five layers hold all, five a tenth, so 5.5 of 10 layers.
    assert fit(llm, sequence_tokens=10_000).kv_tokens == 500_000 * 10 // 5.5 // BLOCK_TOKENS * BLOCK_TOKENS
    assert kv_bytes_per_token(llm, a_variant(), sequence_tokens=10_000) == llm.kv_bytes(10_000)


def test_layers_without_a_cache_take_no_tokens() -> None:
    assert fit(an_llm(stateless_layers=5)).kv_tokens == 1_000_000
    none = fit(an_llm(stateless_layers=10))
    assert none.fits
    assert none.kv_tokens is None
