"""The twin beside what was measured: throughput, first tokens and tokens after them, on what no fit has seen too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from models.twin_timing import TableTiming, Timing
from planner.reproduction.measured.fitting import Fitted, fit_overhead, fit_shape
from planner.reproduction.measured.runs import MEASURED_RUNS, Engine, MeasuredRun, Timeline
from planner.reproduction.measured.shape import StepShape, shape_of

if TYPE_CHECKING:
    from planner.catalog import Catalog

__all__ = [
    "GOALS",
    "Comparison",
    "Figures",
    "Goal",
    "Profile",
    "compare_runs",
    "compare_simpler_engines",
    "figures_of",
    "profiles_of",
]


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of some requests.

    Attributes:
        output_tokens_per_s: their output tokens over the time from their first arrival to their last token.
        ttft_p50_s: time to first token, from arrival, s.
        ttft_p99_s: the same.
        itl_p50_s: mean time per output token of each request, s.
        itl_p99_s: the same.
    """

    output_tokens_per_s: float
    ttft_p50_s: float
    ttft_p99_s: float
    itl_p50_s: float
    itl_p99_s: float


@dataclass(frozen=True, slots=True)
class Goal:
    """How far off a figure may be, as a share of what was measured."""

    figure: str
    title: str
    most: float


GOALS: Final = (
    Goal("output_tokens_per_s", "output tokens/s", 0.05),
    Goal("ttft_p50_s", "TTFT p50", 0.15),
    Goal("ttft_p99_s", "TTFT p99", 0.15),
    Goal("itl_p50_s", "ITL p50", 0.15),
    Goal("itl_p99_s", "ITL p99", 0.15),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """Step times that are tried, and what they were made of.

    Attributes:
        name: for people.
        timing: the step times.
        parameters: what was fitted, s; empty: nothing was.
    """

    name: str
    timing: Timing
    parameters: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run replayed with one profile.

    Attributes:
        run: which run.
        engine: what was recorded of it.
        profile: which step times.
        measured: timeline of the engine.
        replayed: timeline of the twin.
        parts: figures by part of the run: measured, then replayed.
    """

    run: MeasuredRun
    engine: Engine
    profile: Profile
    measured: Timeline
    replayed: Timeline
    parts: Mapping[str, tuple[Figures, Figures]]

    def error(self, part: str, figure: str) -> float:
        """How far off the twin is, relative to what was measured."""
        measured, replayed = self.parts[part]
        return float(getattr(replayed, figure) / getattr(measured, figure) - 1.0)

    def missed(self, part: str) -> list[Goal]:
        """Goals that are not met."""
        return [goal for goal in GOALS if not abs(self.error(part, goal.figure)) <= goal.most]


def compare_runs(
    data: Path, catalog: Catalog, runs: Sequence[MeasuredRun] = MEASURED_RUNS
) -> Iterator[Comparison]:
    """Each run with each profile that there is for it.

    Args:
        data: folder of test data.
        catalog: knows the LLMs and accelerators.
        runs: which.

    Raises:
        ConfigurationError: files are not there or not of their kind.
    """
    for run in runs:
        engine, kernels = run.engine(data, catalog), run.kernel_times(data, catalog)
        half = len(engine.run) // 2
        parts = {"whole run": slice(None), "second half": slice(half, None)}
        shape = shape_of(catalog.llm(run.llm), catalog.accelerator(run.accelerator), engine.parallelism)
        for profile in profiles_of(engine, half, shape=shape, kernels=kernels):
            yield _compared(engine, profile, parts)


def compare_simpler_engines(
    data: Path, catalog: Catalog, runs: Sequence[MeasuredRun] = MEASURED_RUNS
) -> Iterator[Comparison]:
    """What becomes of replays with kernel times where a part of the engine is left out; as :func:`compare_runs`."""
    for run in runs:
        engine, kernels = run.engine(data, catalog), run.kernel_times(data, catalog)
        if kernels is None:
            continue
        apart = kernels.but(mixed_decode=None, mixed_per_product_s=0.0)
        parts = {"whole run": slice(None), "first half": slice(0, len(engine.run) // 2)}
        for name, timing, looks_ahead in (
            ("as it is", kernels, True),
            ("each step composed when the one before has ended", kernels, False),
            ("attention of prompts and of decoding added up", apart, True),
        ):
            yield _compared(engine, Profile(name, timing, {}), parts, looks_ahead=looks_ahead)


def _compared(
    engine: Engine, profile: Profile, parts: Mapping[str, slice], *, looks_ahead: bool | None = None
) -> Comparison:
    measured, replayed = engine.measured, engine.replayed(profile.timing, looks_ahead=looks_ahead)
    figures = {
        name: (figures_of(measured.part(part)), figures_of(replayed.part(part)))
        for name, part in parts.items()
    }
    return Comparison(engine.declared, engine, profile, measured, replayed, figures)


def profiles_of(
    engine: Engine, half: int, *, shape: StepShape, kernels: TableTiming | None
) -> Iterator[Profile]:
    """Step times of an engine: from its kernels where they were measured, and from its first requests."""
    seen = slice(0, half)
    if kernels is not None:
        yield Profile("kernel times, nothing fitted", kernels, {})
        yield _profile("kernel times and a fixed time per step", fit_overhead(engine, seen, kernels=kernels))
    yield _profile("roofline's form", fit_shape(engine, seen, shape=shape))


def _profile(name: str, fitted: Fitted) -> Profile:
    return Profile(f"{name}, fitted on the first half", fitted.timing, fitted.parameters)


def figures_of(timeline: Timeline) -> Figures:
    """Figures of some requests."""
    span_s = float(timeline.last_s.max() - timeline.arrival_s.min())
    ttft, itl = (np.percentile(values, (50, 99)).tolist() for values in (timeline.ttft_s, timeline.itl_s))
    return Figures(float(timeline.output_tokens.sum()) / span_s, *ttft, *itl)
