"""Recorded runs of vLLM and times of its kernels: what is read, and everything wrong in one message."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from models.twin_timing import Grid
from planner.errors import CatalogError
from planner.importers.vllm.kernels import read_kernel_times
from planner.importers.vllm.recorded import EngineOptions, read_recorded_run

DATA = os.environ.get("FLEETPLAN_TEST_DATA")
with_data = pytest.mark.skipif(DATA is None, reason="FLEETPLAN_TEST_DATA is not set")
REQUEST = {
    "input_toks": 100, "output_toks": 11, "arrival_time": 1000.0, "queued_ts": 50.0, "scheduled_ts": 50.25,
    "first_token_ts": 51.0, "last_token_ts": 52.0,
}  # fmt: skip
OPTIONS = {"max_num_seqs": 64, "max_num_batched_tokens": 1024, "data_parallel_size": 2}


def recorded(folder: Path, requests: Sequence[object], meta: Mapping[str, Any] | None = None) -> Path:
    path = folder / "run_requests.jsonl"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in requests]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = (
        {"model": "org/llm", "vllm_version": "0.19.0", "engine_kwargs": OPTIONS} if meta is None else meta
    )
    (folder / "run_meta.json").write_text(json.dumps(document), encoding="utf-8")
    return path


def test_clocks_are_set_by_the_request_that_was_queued_soonest(tmp_path: Path) -> None:
    """The second one comes 2 s later and is queued 3 s later; the third, earlier in time, is later in the file."""
    second = REQUEST | {
        "arrival_time": 1002.0,
        "queued_ts": 53.0,
        "scheduled_ts": 53.0,
        "first_token_ts": 54.0,
    }
    third = REQUEST | {"arrival_time": 1001.0, "queued_ts": 51.5, "scheduled_ts": 51.5, "output_toks": 5}
    third["first_token_ts"] = 52.0
    late = {"last_token_ts": 60.0}
    run = read_recorded_run(recorded(tmp_path, [REQUEST, second | late, third | late]))
    assert run.arrival_s.tolist() == [0.0, 1.0, 2.0]
    assert run.queued_s.tolist() == [0.0, 1.5, 3.0]
    assert run.scheduled_s.tolist() == [0.25, 1.5, 3.0]
    assert run.output_tokens.tolist() == [11, 5, 11]
    assert (run.name, run.llm, run.engine_version, len(run)) == ("run", "org/llm", "0.19.0", 3)


def test_options_are_as_the_engine_settled_on_them(tmp_path: Path) -> None:
    resolved = {"scheduler_config": {"async_scheduling": False, "enable_chunked_prefill": False}}
    meta = {"engine_kwargs": OPTIONS, "kv_cache": {"num_gpu_blocks": 2588}, "resolved_config": resolved}
    said = read_recorded_run(recorded(tmp_path, [REQUEST], meta)).options
    assert said == EngineOptions(
        max_num_seqs=64,
        max_num_batched_tokens=1024,
        ranks=2,
        kv_blocks=2588,
        chunked_prefill=False,
        async_scheduling=False,
    )
    assert read_recorded_run(recorded(tmp_path, [REQUEST], {})).options == EngineOptions()


def test_everything_wrong_with_a_run_is_in_one_message(tmp_path: Path) -> None:
    lines = [
        "{",
        [],
        REQUEST | {"queued_ts": None},
        REQUEST | {"first_token_ts": 40.0},
        REQUEST | {"output_toks": 0},
        REQUEST,
    ]
    meta = {"engine_kwargs": {"max_num_seqs": "many"}, "kv_cache": {"enable_prefix_caching": 1}}
    with pytest.raises(CatalogError) as caught:
        read_recorded_run(recorded(tmp_path, lines, meta))
    assert [(finding.line, finding.path, finding.found) for finding in caught.value.findings] == [
        (1, "", "no JSON"),
        (2, "", "no object"),
        (3, "", "no number for queued_ts"),
        (4, "", "times of the engine that go back"),
        (5, "", "100 input and 0 output tokens"),
        (None, "engine_kwargs.max_num_seqs", '"many"'),
        (None, "kv_cache.enable_prefix_caching", "1"),
    ]


DENSE = "layer,tokens,time_us\nembedding,1,3\nembedding,100,5\nlayernorm,1,2\nlayernorm,100,4\nmlp,1,10\nmlp,100,30\n"
YIELDING = "layer,sequences,time_us\nlm_head,1,700\nlm_head,11,800\nsampler,1,20\nsampler,11,40\n"


def attention() -> str:
    """A chunk of c takes c/10 + k/100, n requests of d take n·d/100; together 1.5 of the latter and n·c/1000 more."""
    rows = ["prefill_chunk,kv_prefill,n_decode,kv_decode,time_us"]
    chunks, contexts, counts, held = (100, 200, 400), (0, 1000), (10, 20), (100, 300)
    rows += [f"{c},{k},0,0,{c / 10 + k / 100}" for c in chunks for k in contexts]
    # The largest batch was not measured at the longest context.
    measured = [(n, d) for n in counts for d in held if (n, d) != (20, 300)]
    rows += [f"0,0,{n},{d},{n * d / 100}" for n, d in measured]
    rows += [
        f"{c},{k},{n},{d},{c / 10 + k / 100 + 1.5 * n * d / 100 + n * c / 1000}"
        for c in chunks
        for k in contexts
        for n, d in measured
    ]
    return "\n".join(rows) + "\n"


def tables(folder: Path, **changes: str) -> Path:
    content = {"dense": DENSE, "per_sequence": YIELDING, "attention": attention()} | changes
    for name, text in content.items():
        path = folder / f"gpu_{name}.csv"
        if name == "attention":
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")
    return folder / "gpu"


def us(grid: Grid | None) -> list[list[float]]:
    assert grid is not None
    return [[second * 1e6 for second in row] for row in grid.seconds]


def test_kernels_add_up_to_steps(tmp_path: Path) -> None:
    timing = read_kernel_times(tables(tmp_path), layers=10)
    assert timing.tokens is not None
    assert timing.sequences is not None
    # Once the embedding, in each of ten layers two norms and the rest.
    assert [second * 1e6 for second in timing.tokens.seconds] == pytest.approx([3 + 40 + 100, 5 + 80 + 300])
    assert [second * 1e6 for second in timing.sequences.seconds] == pytest.approx([720, 840])
    assert us(timing.prefill) == [pytest.approx(row) for row in ([100, 200], [200, 300], [400, 500])]
    # 20 requests of 300 lie on their row's line, which one point does not tell: as with 100.
    assert us(timing.decode) == [pytest.approx(row) for row in ([100, 300], [200, 200])]
    assert us(timing.mixed_decode) == [pytest.approx(row) for row in ([150, 450], [300, 300])]
    assert timing.mixed_per_product_s == pytest.approx(10 * 1e-9)


def test_everything_wrong_with_kernel_tables_is_in_one_message(tmp_path: Path) -> None:
    prefix = tables(
        tmp_path, dense="layer,tokens\n", per_sequence=f"{YIELDING}lm_head,many,3\nlm_head,3,-1\n"
    )
    (tmp_path / "gpu_attention.csv.gz").unlink()
    with pytest.raises(CatalogError) as caught:
        read_kernel_times(prefix, layers=10)
    assert [(Path(finding.file).name, finding.line) for finding in caught.value.findings] == [
        ("gpu_dense.csv", 1),
        ("gpu_per_sequence.csv", 6),
        ("gpu_per_sequence.csv", 7),
        ("gpu_attention.csv", None),
    ]


@with_data
@pytest.mark.parametrize(
    ("name", "seats", "ranks", "output_tokens"),
    [
        ("RTXPRO6000_Llama-3.1-8B_vllm", 128, 1, 195_753),
        ("RTXPRO6000_Qwen3-30B-A3B-Instruct-2507_vllm", 128, 2, 199_486),
    ],
)
def test_real_runs(name: str, seats: int, ranks: int, output_tokens: int) -> None:
    run = read_recorded_run(Path(DATA or "", "perf/vllm_runs", f"{name}_requests.jsonl"))
    assert (run.options.max_num_seqs, run.options.ranks, len(run)) == (seats, ranks, 300)
    assert run.output_tokens.sum() == output_tokens
    assert (run.queued_s >= run.arrival_s - 1e-9).all()
    assert (run.queued_s - run.arrival_s).max() < 0.2
