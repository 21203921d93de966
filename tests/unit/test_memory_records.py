"""Start-up lines of vLLM in the data folder: tokens follow from bytes exactly, and our bytes are within 3 %."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

import pytest

from models.hardware import Accelerator
from models.variant import Variant
from planner.catalog import Catalog, load_catalog
from planner.performance.memory import BLOCK_TOKENS, kv_bytes_per_token, kv_capacity_tokens, tokens_in

DATA: Final = os.environ.get("FLEETPLAN_TEST_DATA")
GIB: Final = 2**30
needs_data = pytest.mark.skipif(
    DATA is None, reason="FLEETPLAN_TEST_DATA is not set: it names the folder with perf/"
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def a_variant(**arguments: int | None) -> Variant:
    return Variant.model_validate({"id": "v", "accelerator": "acc", "engine_arguments": arguments})


@needs_data
def test_the_start_ups_on_an_h100(catalog: Catalog) -> None:
    text = Path(DATA or "", "perf/inferno/run16_vllm-kv-startup.txt").read_text(encoding="utf-8")
    records = text.split("###")[1:]
    assert len(records) == 2
    for record in records:
        llm = catalog.llm("Llama-3.1-8B" if "Llama-3.1-8B" in record else "Qwen2.5-14B")
        shown = float(re.findall(r"KV cache memory: ([\d.]+) GiB", record)[0])
        tokens = int(re.findall(r"KV cache size: ([\d,]+) tokens", record)[0].replace(",", ""))
        context = int(re.findall(r"'max_model_len': (\d+)", record)[0])
        variant = a_variant(max_requests=128, context_tokens=context)
        # The line shows two decimals of a GiB: its whole blocks are those of some bytes within half of the last one.
        per_token = kv_bytes_per_token(llm, variant)
        least, most = (tokens_in(int((shown + off) * GIB), per_token) for off in (-0.005, 0.005))
        assert least <= tokens <= most
        assert tokens % BLOCK_TOKENS == 0
        ours = kv_capacity_tokens(llm, catalog.accelerator("H100"), variant)
        assert ours.kv_bytes / GIB == pytest.approx(shown, rel=0.03)


@needs_data
def test_the_start_ups_with_a_cache_record(catalog: Catalog) -> None:
    seen = 0
    for path in sorted(Path(DATA or "", "perf/vllm_runs").glob("*_meta.json")):
        meta = json.loads(path.read_text(encoding="utf-8"))
        if "kv_cache" not in meta:
            continue
        seen += 1
        cache, engine = meta["kv_cache"], meta["engine_kwargs"]
        assert cache["num_kv_tokens"] == cache["num_gpu_blocks"] * cache["block_size"]
        device = Accelerator(
            id="device", vendor="NVIDIA", memory_bytes=meta["hardware"]["device_total_memory_bytes"]
        )
        variant = a_variant(
            max_requests=engine["max_num_seqs"],
            batched_tokens=engine["max_num_batched_tokens"],
            context_tokens=engine["max_model_len"],
        )
        ours = kv_capacity_tokens(catalog.llm(meta["model"]), device, variant)
        assert ours.kv_tokens == pytest.approx(cache["num_kv_tokens"], rel=0.03)
    assert seen >= 1
