"""Measured rows of the test data as observations: what fits and the accuracy report are made from.

The tables are not part of the project (data/SOURCES.md of the test data says where they are from); they
are found through FLEETPLAN_TEST_DATA.
"""

from __future__ import annotations

import csv
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.hardware import Accelerator
from models.llm import Llm, Precision
from models.performance import MeasuredPoint
from models.variant import Parallelism, Role
from planner.catalog import Catalog
from planner.importers.aiconfigurator import import_aiconfigurator
from planner.performance.power.fitting import PowerRun
from planner.performance.power.model import used_share
from planner.performance.roofline.fitting import Observation
from planner.performance.roofline.work import Setup, work_of
from planner.planning import known_catalog

__all__ = [
    "ML_ENERGY",
    "SPLITWISE",
    "EnergyRun",
    "energy_runs",
    "measured_points",
    "observations",
    "power_runs",
    "splitwise_draws",
    "test_data",
]

ML_ENERGY: Final = "vllm@mlenergy"
SPLITWISE: Final = "splitwise"

# arXiv 2307.09288; parameters counted as formula D1 of data/SOURCES.md counts them.
_LLAMA_2_70B: Final = Llm.model_validate(
    {
        "id": "Llama-2-70B", "parameters": 68_980_000_000, "layers": 80, "hidden_size": 8192, "vocabulary": 32000,
        "attention": {"kind": "gqa", "kv_heads": 8, "head_dim": 128},
    }
)  # fmt: skip
# One architecture under several names: to leave one out is to leave out all.
_TWINS: Final = {
    "DeepSeek-R1": "DeepSeek-V3",
    "Llama-3.3-70B": "Llama-3.1-70B",
    "Llama-2-70B": "Llama-3.1-70B",
}
_CHECKPOINTS: Final = {
    "Qwen/Qwen3-235B-A22B-Instruct-2507": "Qwen3-235B-A22B",
    "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8": "Qwen3-235B-A22B",
    "Qwen/Qwen3-235B-A22B-Thinking-2507": "Qwen3-235B-A22B",
    "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8": "Qwen3-235B-A22B",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "Qwen3-30B-A3B",
    "Qwen/Qwen3-30B-A3B-Thinking-2507": "Qwen3-30B-A3B",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": "Qwen3-30B-A3B",
    "meta-llama/Llama-3.1-405B-Instruct-FP8": "Llama-3.1-405B",
}
_PRECISIONS: Final = {"bfloat16": Precision.BF16, "fp8": Precision.FP8, "mxfp4": Precision.FP4}
_TUNINGS: Final = ("-FP8", "-BF16", "-Instruct", "-Thinking", "-2507")
_ODD_PROMPT: Final = 8192
_IMAGES: Final = ("image-chat", "video-chat")


@dataclass(frozen=True, slots=True)
class EnergyRun:
    """One run of the ML.ENERGY leaderboard.

    Attributes:
        llm: entry of the catalog; None: not in it.
        name: checkpoint, as published.
        task: what was asked of it.
        row: cells by column.
        setup: as it was served; None where the LLM is not in the catalog.
    """

    llm: Llm | None
    name: str
    task: str
    row: dict[str, str]
    setup: Setup | None


def test_data() -> Path:
    """The folder of the test data; ends the program with a sentence where there is none."""
    folder = os.environ.get("FLEETPLAN_TEST_DATA", "")
    if not folder or not (Path(folder) / "perf").is_dir():
        sys.exit("set FLEETPLAN_TEST_DATA to a folder that holds perf/ with the measured tables")
    return Path(folder)


def measured_points(folder: Path, catalog: Catalog) -> tuple[MeasuredPoint, ...]:
    """AIConfigurator's measured rows, before they are thinned for shipping."""
    table = folder / "perf" / "aiconfigurator_measured_h100_h200_gb200.csv"
    return import_aiconfigurator(table, catalog).points


def observations(folder: Path, catalog: Catalog | None = None) -> list[Observation]:
    """Every row with an inter-token latency of whole replicas: three tables, in a fixed order."""
    catalog = catalog or known_catalog()
    return [
        *_of_points(measured_points(folder, catalog), catalog),
        *_of_energy(energy_runs(folder, catalog)),
        *_of_splitwise(folder, catalog),
    ]


def energy_runs(folder: Path, catalog: Catalog) -> list[EnergyRun]:
    """All runs of the ML.ENERGY table. Experts and attention are spread over every accelerator of a run."""
    with (folder / "perf" / "mlenergy_h100.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [_energy_run(row, catalog) for row in rows]


def power_runs(folder: Path, catalog: Catalog) -> list[PowerRun]:
    """All runs of the ML.ENERGY table, those of LLMs outside the catalog by the parameters that the table states."""
    h100 = catalog.accelerators["H100"]
    runs: list[PowerRun] = []
    for run in energy_runs(folder, catalog):
        row = run.row
        llm = Llm.model_validate(
            {
                "id": _same_weights(run.name),
                "parameters": round(float(row["total_params_b"]) * 1e9),
                "active_parameters": round(float(row["active_params_b"]) * 1e9),
                "layers": 1,
                "attention": {"kind": "gqa", "kv_heads": 1, "head_dim": 1},
            }
        )
        rate = float(row["output_throughput_tokens_per_sec"]) / int(row["num_gpus"])
        used = used_share(llm, h100, _PRECISIONS[row["weight_precision"]], tokens_per_s=rate)
        watts = float(row["avg_power_per_gpu_w"])
        runs.append(
            PowerRun(llm.id, used or 0.0, int(row["num_gpus"]), watts, h100.idle_w or 0.0, h100.tdp_w or 0.0)
        )
    return runs


def splitwise_draws(folder: Path, accelerator: Accelerator) -> Iterator[tuple[float, int, float]]:
    """Share of peak FLOP/s in use, accelerators, and mean draw as a share of TDP, of each measured batch on A100.

    Batches of 8,192 input tokens are left out: they state draws of 0.17 of TDP, a quarter of what shorter and
    longer computations beside them state.
    """
    with (folder / "perf" / "splitwise_llama2_70b.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if (
                row["hardware"] != "a100-80gb"
                or int(row["prompt_size"]) == _ODD_PROMPT
                or not float(row["average_power"] or 0)
            ):
                continue
            tokens = int(row["batch_size"]) * (int(row["prompt_size"]) + int(row["token_size"]))
            rate = tokens / (float(row["e2e_time"]) / 1e3) / int(row["tensor_parallel"])
            used = used_share(_LLAMA_2_70B, accelerator, Precision.BF16, tokens_per_s=rate)
            yield used or 0.0, int(row["tensor_parallel"]), float(row["average_power"])


def _same_weights(name: str) -> str:
    """The network behind a checkpoint: tunings, precisions and added eyes and ears of one are one."""
    short = name.rpartition("/")[2]
    for suffix in _TUNINGS:
        short = short.replace(suffix, "")
    return (
        short.replace("-VL", "")
        .replace("-Coder", "")
        .replace("-Omni", "")
        .replace("Llama-3.3-70B", "Llama-3.1-70B")
    )


def _of_points(points: tuple[MeasuredPoint, ...], catalog: Catalog) -> Iterator[Observation]:
    for point in points:
        # Rows of prefill and decode workers hold the time of the transfer between them.
        if point.role is not Role.BOTH or point.accelerator == "GB200":
            continue
        setup = Setup(
            catalog.llms[point.llm], catalog.accelerators[point.accelerator], point.parallelism, point.precision,
            point.kv_precision, point.role, point.input_tokens, point.output_tokens,
        )  # fmt: skip
        yield Observation(
            work_of(setup), float(point.concurrency), point.itl_s, point.ttft_s, point.rps, point.engine,
            _TWINS.get(point.llm, point.llm), point.accelerator,
        )  # fmt: skip


def _energy_run(row: dict[str, str], catalog: Catalog) -> EnergyRun:
    name = _CHECKPOINTS.get(row["model"], row["model"])
    known = {alias.casefold(): llm for llm in catalog.llms.values() for alias in (llm.id, *llm.aliases)}
    llm = known.get(name.casefold())
    setup = None
    if llm is not None:
        # Input lengths are not stated, and the median latency is that of iterations without a prefill.
        setup = Setup(
            llm, catalog.accelerators["H100"], Parallelism(tp=int(row["num_gpus"]), ep=int(row["ep"])),
            _PRECISIONS[row["weight_precision"]], Precision.BF16, Role.BOTH, 0, float(row["avg_output_len"]),
        )  # fmt: skip
    return EnergyRun(llm, row["model"], row["task"], row, setup)


def _of_energy(runs: list[EnergyRun]) -> Iterator[Observation]:
    for run in runs:
        if run.llm is None or run.setup is None or run.task in _IMAGES:
            continue
        rate = float(run.row["output_throughput_tokens_per_sec"]) / run.setup.output_tokens
        yield Observation(
            work_of(run.setup), max(1.0, float(run.row["avg_batch_size"])), float(run.row["median_itl_ms"]) / 1e3,
            None, rate, ML_ENERGY, _TWINS.get(run.llm.id, run.llm.id), "H100",
        )  # fmt: skip


def _of_splitwise(folder: Path, catalog: Catalog) -> Iterator[Observation]:
    """Medians over repeated runs of one batch; runs under a power cap are left out."""
    accelerators: dict[str, Accelerator] = {
        "a100-80gb": catalog.accelerators["A100-80GB"], "h100-80gb": catalog.accelerators["H100"],
    }  # fmt: skip
    repeated: dict[tuple[str, int, int, int, int], list[float]] = defaultdict(list)
    with (folder / "perf" / "splitwise_llama2_70b.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["hardware"] in accelerators:
                shape = (row["tensor_parallel"], row["prompt_size"], row["batch_size"], row["token_size"])
                tp, prompt, batch, token = (int(cell) for cell in shape)
                repeated[row["hardware"], tp, prompt, batch, token].append(float(row["token_time"]) / 1e3)
    for (hardware, tp, prompt, batch, token), times in repeated.items():
        accelerator = accelerators[hardware]
        setup = Setup(
            _LLAMA_2_70B,
            accelerator,
            Parallelism(tp=tp),
            Precision.BF16,
            Precision.BF16,
            Role.DECODE,
            prompt,
            token,
        )
        yield Observation(
            work_of(setup), float(batch), statistics.median(times), None, None, SPLITWISE,
            _TWINS["Llama-2-70B"], accelerator.id,
        )  # fmt: skip
