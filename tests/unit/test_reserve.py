"""Activations and the cache that they leave, against start-ups of vLLM 0.19.0 on an H100 (V8 of data/SOURCES.md)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from models.hardware import Accelerator
from models.llm import Llm
from models.variant import Variant
from planner.performance.memory import RESERVE_BYTES, kv_capacity_tokens
from planner.performance.reserve import activation_bytes, batched_tokens, max_requests, reserve_bytes

GIB: Final = 2**30
H100: Final = Accelerator(id="H100", vendor="NVIDIA", memory_bytes=81_090 * 2**20)

DENSE: Final = [
    # vocabulary, hidden, feed-forward, tp, peak of the profiling run in GiB
    ("Llama-3.1-8B", 128_256, 4096, 14_336, 1, 1.89),
    ("Llama-3.3-70B-fp8", 128_256, 8192, 28_672, 2, 1.96),
    ("Qwen2.5-7B", 152_064, 3584, 18_944, 1, 2.21),
    ("Qwen2.5-72B", 152_064, 8192, 29_568, 2, 2.29),
    ("Qwen3-8B", 151_936, 4096, 12_288, 1, 2.21),
    ("Qwen3-14B", 151_936, 5120, 17_408, 1, 2.23),
    ("CodeLlama-7b", 32_016, 4096, 11_008, 1, 0.77),
    ("granite-3.1-8b", 49_155, 4096, 12_800, 1, 0.85),
    ("granite-3.1-2b", 49_155, 2048, 8192, 1, 0.75),
    ("phi-4", 100_352, 5120, 17_920, 1, 1.52),
    ("gemma-2-27b", 256_000, 4608, 36_864, 1, 3.66),
    ("gemma-2-2b", 256_000, 2304, 9216, 1, 3.62),
    ("gemma-7b", 256_000, 3072, 24_576, 1, 3.63),
]
MIXTURES: Final = [
    # vocabulary, hidden, feed-forward, tp, experts, visited, width, GiB
    ("Qwen3-30B-A3B", 151_936, 2048, 6144, 1, (128, 8, 768), 2.68),
    ("DeepSeek-V2-Lite", 102_400, 2048, 10_944, 1, (64, 6, 1408), 1.93),
    ("Qwen1.5-MoE-A2.7B", 151_936, 2048, 5632, 1, (60, 4, 1408), 2.47),
    ("Mixtral-8x7B", 32_000, 4096, None, 2, (8, 2, 14_336), 1.21),
    ("gpt-oss-20b", 201_088, 2880, None, 2, (32, 4, 2880), 2.87),
    ("Llama-4-Scout", 202_048, 5120, 16_384, 4, (16, 1, 8192), 3.19),
]


def an_llm(vocabulary: int, hidden: int, feed_forward: int | None, **fields: Any) -> Llm:
    attention = {"kind": "gqa", "kv_heads": 8, "head_dim": 128}
    shapes = {"vocabulary": vocabulary, "hidden_size": hidden, "feed_forward_size": feed_forward}
    return Llm.model_validate(
        {"id": "one", "parameters": 10**9, "layers": 32, "attention": attention} | shapes | fields
    )


def a_variant(tp: int = 1, **fields: Any) -> Variant:
    return Variant.model_validate({"id": "v", "accelerator": "H100", "parallelism": {"tp": tp}} | fields)


@pytest.mark.parametrize(("name", "vocabulary", "hidden", "feed_forward", "tp", "gib"), DENSE)
def test_the_peak_of_a_dense_llm(
    name: str, vocabulary: int, hidden: int, feed_forward: int, tp: int, gib: float
) -> None:
    ours = activation_bytes(an_llm(vocabulary, hidden, feed_forward), H100, a_variant(tp))
    assert (ours or 0) / GIB == pytest.approx(gib, rel=0.035), name


@pytest.mark.parametrize("record", MIXTURES, ids=lambda record: record[0])
def test_the_peak_of_a_mixture_of_experts_is_close_and_rather_too_high(record: tuple[Any, ...]) -> None:
    _, vocabulary, hidden, feed_forward, tp, (experts, visited, width), gib = record
    moe = {"experts": experts, "experts_per_token": visited, "expert_size": width}
    ours = activation_bytes(an_llm(vocabulary, hidden, feed_forward, moe=moe), H100, a_variant(tp))
    assert 0.97 * gib <= (ours or 0) / GIB <= 1.16 * gib


@pytest.mark.parametrize(
    ("shape", "parameters", "layers", "tp", "gib"),
    [
        ((128_256, 4096, 14_336), 8_030_261_248, 32, 1, 58.11),
        ((152_064, 3584, 18_944), 7_615_616_512, 28, 1, 58.53),
        # What is left of 75.23 GiB beside weights of 7.51 and 3.77 GiB, the peak and 2.07 and 2.13 GiB outside.
        ((128_256, 4096, 14_336), 8_030_261_248, 32, 2, 75.23 - 7.51 - 1.89 - 2.07),
        ((128_256, 4096, 14_336), 8_030_261_248, 32, 4, 75.23 - 3.77 - 1.89 - 2.13),
    ],
)
def test_the_cache_on_an_h100(
    shape: tuple[int, int, int], parameters: int, layers: int, tp: int, gib: float
) -> None:
    # Version 0.19 captures graphs after it has sized the cache.
    variant = a_variant(tp, memory_utilization=0.95, engine_arguments={"graphs": False})
    ours = kv_capacity_tokens(an_llm(*shape, parameters=parameters, layers=layers), H100, variant)
    assert ours.kv_bytes / GIB == pytest.approx(gib, rel=0.005)


def test_fewer_requests_and_tokens_in_a_step_leave_more() -> None:
    llm = an_llm(128_256, 4096, 14_336)
    usual = reserve_bytes(llm, H100, a_variant())
    small = reserve_bytes(llm, H100, a_variant(engine_arguments={"max_requests": 64, "batched_tokens": 2048}))
    eager = reserve_bytes(llm, H100, a_variant(engine_arguments={"graphs": False}))
    assert small < usual - GIB
    assert usual - eager == 32 * 16 * 2**20


@pytest.mark.parametrize(
    ("name", "gib", "tokens", "requests"),
    [
        ("H100", 80, 8192, 1024),
        ("L40S", 48, 2048, 256),
        ("A100-80GB", 80, 2048, 256),
        ("MI300X", 192, 8192, 1024),
    ],
)
def test_the_defaults_of_the_server(name: str, gib: int, tokens: int, requests: int) -> None:
    accelerator = Accelerator(id=name, vendor="Acme", memory_bytes=gib * GIB)
    assert batched_tokens(accelerator, a_variant()) == tokens
    assert max_requests(accelerator, a_variant()) == requests


def test_no_more_requests_than_tokens_in_a_step() -> None:
    assert max_requests(H100, a_variant(engine_arguments={"batched_tokens": 100})) == 100


def test_unknown_shapes_and_stated_reserves() -> None:
    unknown = Llm.model_validate(
        {
            "id": "x",
            "parameters": 10**9,
            "layers": 8,
            "attention": {"kind": "gqa", "kv_heads": 1, "head_dim": 8},
        }
    )
    assert reserve_bytes(unknown, H100, a_variant()) == RESERVE_BYTES
    assert reserve_bytes(unknown, H100, a_variant(activation_reserve_bytes=7)) == 7
    assert reserve_bytes(unknown, H100, a_variant(tp=2)) > RESERVE_BYTES
