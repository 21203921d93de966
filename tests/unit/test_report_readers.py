"""Reports of load tests become load points, whatever tool wrote them; what cannot be used is refused with a reason."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from models.load import Arrivals, LoadReport
from planner.errors import CatalogError
from planner.importers.reports import read_reports

DATA: Final = os.environ.get("FLEETPLAN_TEST_DATA")
with_data = pytest.mark.skipif(DATA is None, reason="FLEETPLAN_TEST_DATA is not set")

VLLM: Final[dict[str, Any]] = {
    "date": "20260501-100000", "backend": "vllm", "model_id": "some/llm", "num_prompts": 100, "request_rate": "inf",
    "max_concurrency": 8, "duration": 50.0, "completed": 98, "total_input_tokens": 98_000, "total_output_tokens": 9_800,
    "request_throughput": 1.96, "mean_ttft_ms": 200.0, "median_ttft_ms": 190.0, "p99_ttft_ms": 400.0,
    "mean_tpot_ms": 38.0, "mean_itl_ms": 76.0, "mean_e2el_ms": 3962.0,
}  # fmt: skip
AIPERF: Final[dict[str, Any]] = {
    "request_throughput": {"unit": "requests/sec", "avg": 13.0},
    "request_latency": {"unit": "ms", "avg": 6500.0, "p50": 5800.0, "p99": 9400.0},
    "time_to_first_token": {"unit": "ms", "avg": 1600.0, "p50": 790.0, "p95": 4000.0},
    "inter_token_latency": {"unit": "ms", "avg": 50.0},
    "input_sequence_length": {"unit": "tokens", "avg": 550.0},
    "output_sequence_length": {"unit": "tokens", "avg": 97.0},
    "request_count": {"unit": "requests", "avg": 200.0},
    "error_summary": [{"error_details": {"code": 500}, "count": 3}],
    "input_config": {"endpoint": {"model_names": ["some/llm"]}, "loadgen": {"concurrency": 100}},
}
AIPERF_CSV: Final = """Metric,avg,min,max,p1,p50,p99,std
Request Latency (ms),6500.00,4996.25,9383.37,5523.64,5800.00,9400.00,1171.14
Time to First Token (ms),"1,600.00",382.24,4121.09,403.48,790.00,4119.33,1189.99
Inter Token Latency (ms),50.00,46.81,56.30,50.41,51.98,55.87,1.23
Input Sequence Length (tokens),550.00,550.00,550.00,550.00,550.00,550.00,0.00
Output Sequence Length (tokens),97.00,91.00,97.00,91.00,97.00,97.00,0.88

Metric,Value
Benchmark Duration (sec),15.20
Request Throughput (requests/sec),13.00
Request Count,200.00

Endpoint,GPU_Index,GPU_Name,GPU_UUID,Metric,avg
localhost:9401,0,Some GPU,GPU-1,GPU Power Usage (W),43.37
"""


def written(folder: Path, content: object, name: str = "report.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def fixture(name: str) -> Path:
    assert DATA is not None
    return Path(DATA, "perf", name)


def refusal(path: Path) -> str:
    with pytest.raises(CatalogError) as caught:
        read_reports([path])
    return str(caught.value)


def metrics(when: float, *, count: float, running: int = 4, engine: int = 0) -> str:
    """A page of a server that has answered ``count`` requests: 100 in, 11 out, TTFT 0.1 s, ITL 0.02 s, 0.3 s in all."""
    labels = f'engine="{engine}",model_name="some/llm"'
    lines = [
        f"vllm:num_requests_running{{{labels}}} {running}",
        f"vllm:num_requests_waiting{{{labels}}} 1",
        f"vllm:kv_cache_usage_perc{{{labels}}} 0.25",
        f'vllm:request_success_total{{{labels},finished_reason="stop"}} {count}',
        f'vllm:request_success_total{{{labels},finished_reason="abort"}} {count / 10}',
    ]
    for name, each, mean in (
        ("request_prompt_tokens", 1, 100), ("request_generation_tokens", 1, 11),
        ("time_to_first_token_seconds", 1, 0.1), ("inter_token_latency_seconds", 10, 0.02),
        ("e2e_request_latency_seconds", 1, 0.3),
    ):  # fmt: skip
        lines += [
            f"vllm:{name}_count{{{labels}}} {count * each}",
            f"vllm:{name}_sum{{{labels}}} {count * each * mean}",
        ]
    lines += [
        f'vllm:time_to_first_token_seconds_bucket{{{labels},le="{bound}"}} {share * count}'
        for bound, share in (("0.08", 0.0), ("0.12", 1.0), ("+Inf", 1.0))
    ]
    return "".join(f"{line} {round(when * 1000)}\n" for line in lines)


@with_data
@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("benchmark_reports/guidellm_report_v2.json", 2),
        ("benchmark_reports/inference_perf_lifecycle.yaml", 1),
        ("benchmark_reports/inferencex_glm5.json", 1),
        ("benchmark_reports/br_v0_1_example.yaml", 1),
        ("benchmark_reports/br_v0_2_example.yaml", 1),
        ("benchmark_reports/br_v0_2_1_example.yaml", 1),
        ("inferno/run16_curve-qwen-real.csv", 16),
        ("vllm_runs/RTXPRO6000_Llama-3.1-8B_vllm_requests.jsonl", 8),
    ],
)
def test_real_files_are_told_by_their_content(name: str, points: int, tmp_path: Path) -> None:
    nameless = tmp_path / "x"
    nameless.write_bytes(fixture(name).read_bytes())
    assert len(read_reports([nameless]).points) == points


@with_data
def test_guidellm_states_tokens_in_ms_and_requests_in_s() -> None:
    point = read_reports([fixture("benchmark_reports/guidellm_report_v2.json")]).points[0]
    assert point.arrivals is Arrivals.OPEN
    assert (point.offered_rps, point.shape, point.requests) == (2.0, (72, 8), 2)
    assert point.ttft is not None
    assert point.ttft.mean_s == pytest.approx(0.011481165885925293)
    assert point.ttft.p99_s == pytest.approx(0.011686325073242188)
    assert point.e2e is not None
    assert point.e2e.mean_s == pytest.approx(0.01978909969329834)
    assert point.origin.llm == "e2e-mock-model"


@with_data
def test_a_guidellm_run_in_which_everything_failed_is_refused(tmp_path: Path) -> None:
    data = json.loads(fixture("benchmark_reports/guidellm_report_v2.json").read_text())
    failed = copy.deepcopy(data)
    for benchmark in failed["benchmarks"]:
        benchmark["metrics"]["request_totals"] = {"successful": 0, "errored": 7, "incomplete": 0, "total": 7}
    said = refusal(written(tmp_path, failed))
    assert said.count("0 requests that succeeded and 7 that failed") == 2


@with_data
def test_every_schema_of_llm_d_benchmark_says_the_units_of_its_figures() -> None:
    first = read_reports([fixture("benchmark_reports/br_v0_1_example.yaml")]).points[0]
    assert first.ttft is not None
    assert first.ttft.mean_s == pytest.approx(0.800974442732916e-3)
    assert (first.errors, first.origin.accelerator, first.origin.parallelism) == (1, "H100", None)
    newer = read_reports([fixture("benchmark_reports/br_v0_2_1_example.yaml")])
    point = newer.points[0]
    assert newer.startups_s == (72.0, 85.0, 95.0)
    assert (point.kv_usage, point.running, point.waiting) == (pytest.approx(0.425), 24.6, 3.2)
    assert (point.origin.replicas, point.origin.parallelism and point.origin.parallelism.tp) == (2, 8)


@with_data
def test_a_schema_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    text = (
        fixture("benchmark_reports/br_v0_2_1_example.yaml")
        .read_text()
        .replace("version: 0.2.1", "version: 0.9")
    )
    assert "found '0.9'; allowed: 0.1, 0.2, 0.2.1" in refusal(written(tmp_path, text, "r.yaml"))


@with_data
def test_the_time_per_token_is_the_one_that_fits_the_whole_request() -> None:
    point = read_reports([fixture("benchmark_reports/inference_perf_lifecycle.yaml")]).points[0]
    assert point.itl is not None
    assert point.itl.mean_s == pytest.approx(0.009279705855977042)


@with_data
def test_inferencex_states_medians_in_s() -> None:
    point = read_reports([fixture("benchmark_reports/inferencex_glm5.json")]).points[0]
    assert point.ttft is not None
    assert (point.ttft.mean_s, point.ttft.p50_s) == (None, pytest.approx(7.168220846913755))
    assert (point.arrivals, point.concurrency, point.shape) == (Arrivals.CLOSED, 32.0, (8192, 128))


@with_data
def test_recorded_requests_are_put_together_by_the_load_that_they_met() -> None:
    report = read_reports([fixture("vllm_runs/RTXPRO6000_Qwen3-30B-A3B-Instruct-2507_vllm_requests.jsonl")])
    batches = [point.running for point in report.points]
    assert batches == sorted(batches, key=lambda each: each or 0.0)
    assert sum(point.requests or 0 for point in report.points) == 300
    assert report.arrival_cv == pytest.approx(0.9575, abs=1e-3)
    itl = [
        point.itl.mean_s for point in report.points if point.itl is not None and point.itl.mean_s is not None
    ]
    assert itl == sorted(itl)


@pytest.mark.parametrize("lines", [False, True], ids=["one record", "a line per record"])
def test_vllm_bench_serve(lines: bool, tmp_path: Path) -> None:
    content = "".join(json.dumps(VLLM | {"max_concurrency": n}) + "\n" for n in (8, 16)) if lines else VLLM
    points = read_reports([written(tmp_path, content)]).points
    assert [point.concurrency for point in points] == ([8.0, 16.0] if lines else [8.0])
    point = points[0]
    assert (point.shape, point.errors, point.origin.engine) == ((1000, 100), 2, "vllm")
    # Two tokens per piece: 38 ms per token and 76 ms per piece; 0.2 s + 99 x 38 ms is the whole request.
    assert point.itl is not None
    assert point.itl.mean_s == pytest.approx(0.038)


@pytest.mark.parametrize("content", [AIPERF, AIPERF_CSV], ids=["json", "csv"])
def test_aiperf(content: object, tmp_path: Path) -> None:
    point = read_reports([written(tmp_path, content)]).points[0]
    assert point.ttft is not None
    assert point.e2e is not None
    assert (point.ttft.mean_s, point.ttft.p50_s, point.e2e.p99_s) == (1.6, 0.79, pytest.approx(9.4))
    assert (point.achieved_rps, point.shape, point.requests) == (13.0, (550, 97), 200)
    assert point.errors == (3 if isinstance(content, dict) else 0)


def test_metrics_pages_are_read_as_differences(tmp_path: Path) -> None:
    for number, count in enumerate((1000, 1100, 1160)):
        written(tmp_path, metrics(1_777_142_838 + 20 * number, count=count), f"{number}.prom")
    report = read_reports([tmp_path])
    assert [point.achieved_rps for point in report.points] == pytest.approx([5.0, 3.0])
    point = report.points[0]
    assert point.ttft is not None
    assert point.itl is not None
    assert (point.ttft.mean_s, point.itl.mean_s) == (pytest.approx(0.1), pytest.approx(0.02))
    assert point.ttft.p50_s == pytest.approx(0.1)
    assert (point.running, point.waiting, point.concurrency, point.kv_usage) == (4.0, 1.0, 5.0, 0.25)
    assert (point.shape, point.requests, point.errors) == ((100, 11), 100, 10)


def test_metrics_of_several_replicas_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    pages = [
        metrics(1_777_142_838 + 20 * n, count=50 * n * (1 + e), engine=e) for n in range(2) for e in range(2)
    ]
    points = read_reports([written(tmp_path, "".join(pages), "history.prom")]).points
    assert [(point.origin.place, point.requests) for point in points] == [("0", 50), ("1", 100)]


def test_a_server_that_was_started_anew_leaves_its_stretch_out(tmp_path: Path) -> None:
    pages = "".join(metrics(1_777_142_838 + 20 * n, count=count) for n, count in enumerate((1000, 10, 60)))
    report = read_reports([written(tmp_path, pages, "history.prom")])
    assert [point.requests for point in report.points] == [50]
    assert "a counter fell" in report.notes[0]


def without_times(text: str) -> str:
    return "".join(line.rpartition(" ")[0] + "\n" for line in text.splitlines())


def test_the_name_of_a_page_may_state_its_time(tmp_path: Path) -> None:
    for name, count in (("2026-04-25T18-47-18Z.prom", 0), ("2026-04-25T18-47-28Z.prom", 50)):
        written(tmp_path, without_times(metrics(0, count=count)), name)
    assert read_reports([tmp_path]).points[0].achieved_rps == pytest.approx(5.0)


REFUSED: Final[dict[str, tuple[object, str]]] = {
    "no report": ({"a": 1}, "no report of a known format"),
    "no text of any kind": ("just words", "no report of a known format"),
    "brackets without end": ("[" * 100_000, "no report of a known format"),
    "another guidellm": ({"metadata": {"version": 1}, "benchmarks": [{}]}, "found 1; allowed: 2"),
    "no benchmark": ({"metadata": {"version": 2}, "benchmarks": []}, "no benchmark"),
    "nothing succeeded": (VLLM | {"completed": 0}, "no request that succeeded"),
    "aiperf without success": (
        AIPERF | {"request_count": {"unit": "requests", "avg": 0}},
        "no request that succeeded",
    ),
    "an unknown unit": (
        AIPERF | {"request_latency": {"unit": "days", "avg": 1}},
        "request_latency.unit: found 'days'",
    ),
    "a page without time": (without_times(metrics(0, count=3)), "no time"),
    "one page": (metrics(5, count=30), "two pages or more"),
    "a time series alone": (
        "t,prompt_throughput,running,waiting\n1,2,3,4\n",
        "time series without its requests",
    ),
    "a curve of words": (
        "shape,concurrency,achieved_rpm,itl_ms,ttft_ms\nsmall,1,x,2,3\n",
        "numbers in every column",
    ),
}


@pytest.mark.parametrize(
    ("name", "content"),
    {
        "vllm bench": VLLM | {"mean_ttft_ms": 1e300},
        "aiperf": AIPERF | {"time_to_first_token": {"unit": "ms", "avg": 1e300}},
        "curve": "shape,concurrency,achieved_rpm,itl_ms,ttft_ms\n10x10,1,2,3,1e300\n",
        "inferencex": VLLM | {"mean_tpot_ms": 1e300, "mean_itl_ms": 1e300},
    }.items(),
)
def test_a_latency_beyond_all_measure_is_a_problem_of_the_file(
    name: str, content: object, tmp_path: Path
) -> None:
    del name
    assert "allowed: at most 1e+09" in refusal(written(tmp_path, content))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    content, reason = REFUSED[name]
    assert reason in refusal(written(tmp_path, content))


def test_problems_of_all_files_are_said_at_once(tmp_path: Path) -> None:
    bad = [written(tmp_path, VLLM | {"completed": 0}, f"{name}.json") for name in "ab"]
    with pytest.raises(CatalogError) as caught:
        read_reports([*bad, tmp_path / "missing.json"])
    assert len(caught.value.findings) == 3


def test_missing_figures_are_named_together(tmp_path: Path) -> None:
    said = refusal(written(tmp_path, {key: VLLM[key] for key in VLLM if not key.startswith("total")}))
    assert "total_input_tokens" in said
    assert "total_output_tokens" in said


def test_yaml_is_read_as_well_as_json(tmp_path: Path) -> None:
    report = read_reports([written(tmp_path, yaml.safe_dump(AIPERF), "r.yaml")])
    assert isinstance(report, LoadReport)
    assert report.points[0].achieved_rps == 13.0
