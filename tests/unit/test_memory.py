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
    way_to_fit,
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


RTX_4090 = {"id": "RTX4090", "vendor": "NVIDIA", "memory_bytes": 25_250_627_584}
RECORDS = [
    # vLLM on an H100 at utilization 0.90, start-up lines (V1 of data/SOURCES.md): GiB shown and tokens.
    ("Llama-3.1-8B", "H100", {"max_requests": 128}, 54.68, 447_936),
    ("Qwen2.5-14B", "H100", {"max_requests": 128}, 41.57, 226_992),
    # vLLM 0.19.0 on an RTX 4090 (V3): 2,588 blocks of 16 tokens at 131,072 bytes.
    (
        "Llama-3.1-8B",
        "RTX4090",
        {"max_requests": 256, "batched_tokens": 2048},
        41_408 * 131_072 / GIB,
        41_408,
    ),
]


@pytest.mark.parametrize(("llm", "accelerator", "arguments", "gib", "tokens"), RECORDS)
def test_the_cache_is_within_three_percent_of_vllm(
    catalog: Catalog, llm: str, accelerator: str, arguments: dict[str, int], gib: float, tokens: int
) -> None:
    device = (
        Accelerator.model_validate(RTX_4090) if accelerator == "RTX4090" else catalog.accelerator(accelerator)
    )
    ours = kv_capacity_tokens(catalog.llm(llm), device, a_variant(engine_arguments=arguments))
    assert ours.kv_bytes / GIB == pytest.approx(gib, rel=0.03)
    assert ours.kv_tokens == pytest.approx(tokens, rel=0.03)


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
    [
        (Precision.FP32, 4.0e9),
        (Precision.FP16, 2.0e9),
        (Precision.FP8, 1.0e9),
        (Precision.FP4, 0.5625e9),
        (Precision.INT4, 0.51953125e9),
    ],
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


def test_the_last_layers_may_have_other_heads_and_a_window() -> None:
    narrow = {"kv_heads": 2, "head_dim": 50}
    llm = an_llm(sliding_layers=5, sliding_window_tokens=1000, sliding_attention=narrow)
    assert kv_bytes_per_token(llm, a_variant()) == 8_000 + 5 * 2 * 2 * 50 * 2
    assert kv_bytes_per_token(llm, a_variant(), sequence_tokens=10_000) == llm.kv_bytes(10_000)


def test_values_may_be_narrower_than_keys() -> None:
    attention = {"kind": "gqa", "kv_heads": 4, "head_dim": 192, "value_head_dim": 128}
    assert kv_bytes_per_token(an_llm(attention=attention), a_variant(tp=2)) == 10 * 2 * (192 + 128) * 2


def test_an_index_is_kept_at_eight_bit_beside_the_latent() -> None:
    attention = {"kind": "mla", "kv_lora_rank": 512, "rope_head_dim": 64, "index_head_dim": 128}
    llm = an_llm(attention=attention)
    assert kv_bytes_per_token(llm, a_variant()) == 10 * (576 * 2 + 132)
    assert kv_bytes_per_token(llm, a_variant(kv=Precision.FP8)) == 10 * (576 + 132)
    assert llm.kv_bytes(7) == 7 * 10 * (576 * 2 + 132)


def test_a_sequence_holds_one_state() -> None:
    llm = an_llm(stateless_layers=5, state_bytes_per_sequence=8_000_000)
    assert kv_bytes_per_token(llm, a_variant(), sequence_tokens=1000) == 8_000 * 1000 + 8_000_000
    assert kv_bytes_per_token(llm, a_variant(tp=2), sequence_tokens=1000) == 4_000 * 1000 + 4_000_000
    # 8 GB hold 500 sequences of 16 MB, so 500,000 tokens, half of what they would hold without states.
    assert fit(llm, sequence_tokens=1000).kv_tokens == 500_000
    assert fit(llm).kv_tokens == 1_000_000


def test_redundant_experts_take_memory() -> None:
    llm = an_llm(moe=MOE)
    plain = weight_bytes_per_accelerator(llm, a_variant(dp=4, ep=4))
    more = weight_bytes_per_accelerator(llm, a_variant(dp=4, ep=4, engine_arguments={"redundant_experts": 4}))
    # Three experts on a rank instead of two, of 0.2e9 bytes each.
    assert more - plain == 0.2e9
    dense = weight_bytes_per_accelerator(an_llm(), a_variant(dp=4, engine_arguments={"redundant_experts": 4}))
    assert dense == 2e9


def test_weights_as_published_may_be_wide_in_part_and_have_scales() -> None:
    llm = an_llm(precision="fp4", wide_parameters=200_000_000, weight_bits=4.25)
    assert weight_bytes_per_accelerator(llm, a_variant()) == 0.8e9 * 4.25 / 8 + 0.2e9 * 2
    # Stored otherwise than published, nobody says what stays wide.
    assert weight_bytes_per_accelerator(llm, a_variant(Precision.FP8)) == 1e9


def test_the_cache_must_hold_one_request_of_the_longest_context() -> None:
    arguments = {"context_tokens": 500_001}
    assert not fit(engine_arguments=arguments).fits
    assert fit(engine_arguments=arguments).missing_bytes == 16_000
    assert fit(engine_arguments={"context_tokens": 500_000}).fits
    assert fit(engine_arguments=arguments, tp=2).fits


def test_blocks_have_the_size_that_the_engine_is_told() -> None:
    spare = 16_000 * 100
    assert fit(memory_bytes=2 * 10**9 + spare, engine_arguments={"block_tokens": 64}).kv_tokens == 64
    assert fit(memory_bytes=2 * 10**9 + spare).kv_tokens == 96


@pytest.mark.parametrize(
    ("memory", "fields", "llm", "tp", "weights"),
    [
        (1.5e9, {}, {}, 2, Precision.FP8),
        (0.6e9, {}, {}, 4, Precision.FP4),
        (0.3e9, {}, {}, 8, None),
        (0.3e9, {"tp": 4}, {}, 8, Precision.FP8),
        (0.6e9, {}, {"query_heads": 6}, None, Precision.FP4),
        (1e6, {}, {}, None, None),
    ],
)
def test_it_names_what_would_fit(
    memory: float, fields: dict[str, Any], llm: dict[str, Any], tp: int | None, weights: Precision | None
) -> None:
    variant = a_variant(memory_utilization=1.0, activation_reserve_bytes=0, **fields)
    assert not kv_capacity_tokens(an_llm(**llm), an_accelerator(int(memory)), variant).fits
    way = way_to_fit(an_llm(**llm), an_accelerator(int(memory)), variant)
    assert (way.tp, way.weights) == (tp, weights)
