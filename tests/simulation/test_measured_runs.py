"""The twin against recorded runs of vLLM, and the fit against a run whose step times are known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from models.twin_timing import TableTiming
from models.variant import Parallelism
from planner.errors import ConfigurationError
from planner.importers.vllm.recorded import EngineOptions, RecordedRun
from planner.planning import known_catalog
from planner.reproduction.measured import GOALS, MEASURED_RUNS, Comparison, compare_runs, measured_vllm
from planner.reproduction.measured.comparing import compare_simpler_engines, figures_of
from planner.reproduction.measured.fitting import fit_shape
from planner.reproduction.measured.runs import Engine, MeasuredRun
from planner.reproduction.measured.shape import StepShape, shape_of

DATA = os.environ.get("FLEETPLAN_TEST_DATA")
with_data = pytest.mark.skipif(
    DATA is None, reason="FLEETPLAN_TEST_DATA is not set: it names the folder with perf/"
)


@pytest.fixture(scope="module")
def compared() -> list[Comparison]:
    return list(compare_runs(Path(DATA or ""), known_catalog()))


@with_data
def test_both_runs_come_out_with_every_profile(compared: list[Comparison]) -> None:
    """Throughput within 5 %, TTFT and ITL within 15 %, on the whole run and on the half that no fit has seen."""
    assert {each.run.name for each in compared} == {run.name for run in MEASURED_RUNS}
    assert len(compared) == 4
    off = {
        (each.run.llm, each.profile.name, part, goal.figure): each.error(part, goal.figure)
        for each in compared
        for part in each.parts
        for goal in GOALS
    }
    allowed = {goal.figure: goal.most for goal in GOALS}
    assert sorted(set(allowed.values())) == [0.05, 0.15]
    assert {key: error for key, error in off.items() if not abs(error) <= allowed[key[-1]]} == {}


@with_data
def test_kernel_times_alone_need_no_fit(compared: list[Comparison]) -> None:
    assert [each.run.llm for each in compared if not each.profile.parameters] == ["Llama-3.1-8B"]


@with_data
def test_an_engine_told_more_simply_is_further_off() -> None:
    whole, sync, apart = compare_simpler_engines(Path(DATA or ""), known_catalog())
    for simpler, part, figure in (
        (sync, "first half", "ttft_p50_s"),
        (apart, "whole run", "output_tokens_per_s"),
    ):
        assert abs(simpler.error(part, figure)) > 2 * abs(whole.error(part, figure))


def test_without_data_it_says_where_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLEETPLAN_TEST_DATA", raising=False)
    with pytest.raises(ConfigurationError, match="FLEETPLAN_TEST_DATA"):
        measured_vllm(1)


def synthetic(shape: StepShape, truth: dict[str, float]) -> Engine:
    """A run of 120 requests of an engine whose step times are known; its second half is busier."""
    rng, n = np.random.default_rng(5), 120
    gaps = rng.exponential(np.where(np.arange(n) < n // 2, 0.4, 0.2))
    arrival = np.cumsum(gaps) - gaps[0]
    inputs, outputs = rng.integers(100, 2000, n).astype(np.int32), rng.integers(50, 400, n).astype(np.int32)
    empty = np.zeros(n)
    run = RecordedRun(
        "made",
        "llm",
        "",
        EngineOptions(max_num_seqs=24),
        inputs,
        outputs,
        arrival,
        empty,
        empty,
        empty,
        empty,
    )
    declared = MeasuredRun(name="made", llm="Llama-3.1-8B", accelerator="H100")
    seen = Engine(declared, run, 40_000).replayed(shape.timing(np.array(list(truth.values()))))
    run = RecordedRun(
        "made",
        "llm",
        "",
        run.options,
        inputs,
        outputs,
        arrival,
        arrival,
        seen.started_s,
        seen.first_s,
        seen.last_s,
    )
    return Engine(declared, run, 40_000)


@pytest.fixture(scope="module")
def shape() -> StepShape:
    catalog = known_catalog()
    return shape_of(catalog.llm("Llama-3.1-8B"), catalog.accelerator("H100"), Parallelism())


def test_a_fit_on_one_half_tells_the_other_half(shape: StepShape) -> None:
    """The truth is off from where the fit starts by up to a factor of 1.6, each parameter in its own way."""
    factors = (1.4, 0.8, 1.3, 1.6, 1.5, 0.9)
    truth = {name: value * factor for (name, value), factor in zip(shape.start.items(), factors, strict=True)}
    engine = synthetic(shape, truth)
    fitted = fit_shape(engine, slice(0, 60), shape=shape)
    start = engine.replayed(shape.timing(np.array(list(shape.start.values()))))
    found, before = (
        figures_of(timeline.part(slice(60, None))) for timeline in (engine.replayed(fitted.timing), start)
    )
    expected = figures_of(engine.measured.part(slice(60, None)))
    for goal in GOALS:
        right = getattr(expected, goal.figure)
        assert getattr(found, goal.figure) == pytest.approx(right, rel=goal.most)
        assert abs(getattr(found, goal.figure) - right) < abs(getattr(before, goal.figure) - right)


def test_an_engine_that_is_too_small_for_its_run_is_told(shape: StepShape) -> None:
    engine = synthetic(shape, shape.start)
    with pytest.raises(ConfigurationError, match=r"requests of made do not fit 60 blocks"):
        Engine(engine.declared, engine.run, 60).replayed(shape.timing(np.array(list(shape.start.values()))))


def terms() -> Iterator[tuple[str, str, float]]:
    """For a step of 32 decoding requests of 1,000 tokens, and one that prefills 512 beside them: what each adds, s."""
    yield "request", "decode", 32
    yield "kv", "decode", 32 * 1000
    yield "token", "prefill", 512
    yield "prefill", "prefill", 1
    yield "pair", "prefill", 512 * (2048 + 256)


@pytest.mark.parametrize("experts", [False, True])
def test_the_form_is_the_sum_that_it_states(experts: bool) -> None:
    catalog = known_catalog()
    llm, ranks = ("Qwen3-30B-A3B", 2) if experts else ("Llama-3.1-8B", 1)
    form = shape_of(catalog.llm(llm), catalog.accelerator("H100"), Parallelism(dp=ranks, ep=ranks))
    assert ("experts" in form.start) == experts
    timing = form.timing(np.array(list(form.start.values())))
    assert isinstance(timing, TableTiming)
    at = dict(zip(timing.tokens.at, timing.tokens.seconds, strict=True)) if timing.tokens else {}
    touched = form.start.get("experts", 0.0) * (1 - form.idle_share ** (32 / ranks))
    assert at[32.0] == pytest.approx(form.start["base"] + touched)
    grids = {"decode": (timing.decode, 32.0, 1000.0), "prefill": (timing.prefill, 512.0, 2048.0)}
    for name, (grid, row, column) in grids.items():
        assert grid is not None
        rows = [np.interp(column, grid.columns, seconds) for seconds in grid.seconds]
        expected = sum(
            form.start[term] * (amount if name == where else 0.0) for term, where, amount in terms()
        )
        assert np.interp(row, grid.rows, rows) == pytest.approx(expected)
