"""``wva-fig2`` and ``wva-fig3``: replicas over time while traffic climbs, on one variant and on two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from models.reproduction import Claim, Origin, Parameter, Picture, Point, Reproduction, Table
from planner.reproduction.intervals import estimate
from planner.reproduction.wva_setup import SOURCE
from planner.reproduction.wva_simulation import A100, H100, SERVICE, Simulation, simulate
from planner.traces.shapes import Constant, Ramp, Steps

if TYPE_CHECKING:
    from planner.simulation.result import Result
    from planner.traces.shapes import Shape

__all__ = ["STAIRS", "figure_2", "figure_3", "first_growth_s", "in_step_s"]

_RUN_S: Final = 600.0
STAIRS: Final = Steps((2.0, 5.0, 10.0), (180.0, 100.0, 320.0))
"""Up at steps 9 and 14 of 20 s."""
RAMP: Final = Ramp(0.25, 5.0, _RUN_S)
BASE: Final = Constant(2.0, _RUN_S)
_TAU_KV: Final = 0.8
_MOST_BY_TOLERANCE: Final = 10
"""Ten pods and a metric of eleven are within HPA's tolerance of each other."""
_EVERY: Final = 5
_MINUTE: Final = 60
_TWO: Final = Simulation(variants=((A100, 4), (H100, 10)))


def first_growth_s(result: Result, variant: str, *, since_s: float) -> float | None:
    """When a further replica of a variant was first ready after a time, s after it; None: never."""
    ready, times = result.variants[variant]["ready"], result.time["time_s"]
    later = np.flatnonzero(times > since_s)
    before = int(ready[max(0, later[0] - 1)])
    grown = later[ready[later] > before]
    return float(times[grown[0]] - since_s) if len(grown) else None


def in_step_s(result: Result, variant: str) -> list[float | None]:
    """How long after each rise of the staircase a further replica was ready; NaN: there were ten before, see the notes."""
    rises = np.cumsum(STAIRS.lengths_s)[:-1]
    return [
        np.nan
        if result.there(variant)[int(rise) - 1] >= _MOST_BY_TOLERANCE
        else first_growth_s(result, variant, since_s=float(rise))
        for rise in rises
    ]


def _kv_peaks(result: Result) -> list[float]:
    """Mean KV usage of the fleet in the fullest minute of each stair, after the reaction time of the last rise."""
    usage = result.variants[A100]["kv_usage"]
    minutes = np.convolve(usage, np.ones(_MINUTE) / _MINUTE, mode="valid")
    ends = np.cumsum(STAIRS.lengths_s).astype(int)
    starts = [0, *ends[:-1]]
    return [float(minutes[a : b - _MINUTE].max()) for a, b in zip(starts, ends, strict=True)]


def figure_2(seeds: int) -> Reproduction:
    """A staircase on one variant."""
    given = Simulation()
    results = [simulate(given, STAIRS, seed=seed) for seed in range(seeds)]
    waits = [wait for result in results for wait in in_step_s(result, A100)]
    known = [np.inf if wait is None else wait for wait in waits if wait is None or not np.isnan(wait)]
    worst, held_back = max(known, default=np.inf), len(waits) - len(known)
    peaks = [max(_kv_peaks(result)) for result in results]
    return Reproduction(
        name="wva-fig2",
        title="Replicas follow a staircase of 2, 5 and 10 req/s",
        source=f"{SOURCE}, figure 2",
        seeds=seeds,
        parameters=(_stairs(given), *given.parameters),
        tables=(_stair_table(results),),
        pictures=(_over_time(results[0], STAIRS, "reproduction-wva-fig2", "Traffic, replicas and KV usage"),),
        claims=(
            Claim(
                text="Replicas follow each rise within one control cycle and start-up",
                held=worst <= given.reaction_s,
                shown=f"a further replica was ready after at most {worst:.0f} s of {given.reaction_s:.0f} s "
                f"(scrape, WVA, HPA, pod); {held_back} of {len(waits)} rises met ten replicas already",
            ),
            Claim(
                text="The KV peak is held down",
                held=max(peaks) < _TAU_KV,
                shown=f"fullest minute of a run: {estimate(peaks).text(2, scale=100)} % (τ: {_TAU_KV:.0%})",
            ),
        ),
        notes=(
            "WVA adds one replica per cycle and waits until it is ready, so it climbs behind a rise; how far is in the "
            "table. Counts end at ten whatever the ceiling: HPA leaves a metric of 11 for 10 pods alone, since 1.1 is "
            "within its tolerance of 0.1.",
        ),
    )


def _stairs(given: Simulation) -> Parameter:
    rises = np.cumsum(STAIRS.lengths_s)[:-1] / given.step_s
    return Parameter(
        name="traffic",
        value="2, 5 and 10 req/s, up at steps " + " and ".join(f"{rise:.0f}" for rise in rises),
        origin=Origin.PAPER,
        why="'about' these rates",
    )


def _stair_table(results: list[Result]) -> Table:
    ends = np.cumsum(STAIRS.lengths_s).astype(int)
    rows = []
    for place, rate in enumerate(STAIRS.rates_rps):
        rows.append(
            (
                f"{rate:g} req/s",
                estimate([float(result.there(A100)[ends[place] - 1]) for result in results]).text(1),
                estimate([_kv_peaks(result)[place] for result in results]).text(1, scale=100),
                "–"
                if place == 0
                else estimate([_or_nan(in_step_s(result, A100)[place - 1]) for result in results]).text(0),
            )
        )
    head = (
        "stair",
        "replicas at its end",
        "KV usage in its fullest minute, %",
        "first further replica after, s",
    )
    return Table(title="Stairs", head=head, rows=tuple(rows))


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _over_time(result: Result, shape: Shape, name: str, title: str) -> Picture:
    times = result.time["time_s"]
    last = int(min(len(times), shape.duration_s))
    arrivals = np.diff(result.time[f"{SERVICE}:arrivals"], prepend=0)
    points = []
    for at in range(_EVERY - 1, last, _EVERY):
        x = float(times[at])
        recent = float(np.mean(arrivals[max(0, at - 19) : at + 1]))
        points.append(Point(x=x, y=recent, series="arrivals", panel="traffic, req/s"))
        for variant, table in result.variants.items():
            points.append(Point(x=x, y=float(result.there(variant)[at]), series=variant, panel="replicas"))
            points.append(Point(x=x, y=float(table["kv_usage"][at]), series=variant, panel="KV usage"))
    return Picture(
        name=name,
        title=f"{title} (first seed)",
        kind="lines",
        x="time, s",
        y="",
        points=tuple(points),
    )


def _ceiling_s(result: Result) -> float:
    """When A100 first stood at its ceiling; infinity: never."""
    most = dict(_TWO.variants)[A100]
    full = np.flatnonzero(result.there(A100) >= most)
    return float(result.time["time_s"][full[0]]) if len(full) else np.inf


def _grown_s(result: Result, variant: str) -> float:
    grown = np.flatnonzero(result.there(variant) > 1)
    return float(result.time["time_s"][grown[0]]) if len(grown) else np.inf


def _draw_kw(given: Simulation, seeds: int) -> list[float]:
    """Mean board power at base load, by run."""
    draws = []
    for seed in range(seeds):
        result = simulate(given, BASE, seed=seed)
        inside = result.time["time_s"] <= _RUN_S
        draws.append(
            sum(float(np.mean(table["power_w"][inside])) for table in result.variants.values()) / 1000.0
        )
    return draws


def figure_3(seeds: int) -> Reproduction:
    """A ramp on two variants, and what serving base load draws."""
    results = [simulate(_TWO, RAMP, seed=seed) for seed in range(seeds)]
    full, grown = [_ceiling_s(r) for r in results], [_grown_s(r, H100) for r in results]
    draws = {
        "A100 first": _draw_kw(_TWO, seeds),
        "A100 first, A100 half as fast": _draw_kw(replace(_TWO, a100_times=2.0), seeds),
        "H100 alone": _draw_kw(Simulation(variants=((H100, 10),)), seeds),
    }
    return Reproduction(
        name="wva-fig3",
        title="A ramp over two variants: the cheap one first",
        source=f"{SOURCE}, figure 3",
        seeds=seeds,
        parameters=(
            Parameter(
                name="traffic",
                value=f"from {RAMP.from_rps:g} to {RAMP.to_rps:g} req/s in 600 s",
                origin=Origin.TUNED,
                why="so that A100 is used up at about step 20; the rates of the ramp are not given",
            ),
            *_TWO.parameters,
        ),
        tables=(_ramp_table(results), _draw_table(draws)),
        pictures=(_over_time(results[0], RAMP, "reproduction-wva-fig3", "A ramp over two variants"),),
        claims=(
            Claim(
                text="A100 grows first, H100 only when A100 is used up",
                held=all(f < h for f, h in zip(full, grown, strict=True)),
                shown=f"A100 at its ceiling at step {_steps(full)}, H100 grows at step {_steps(grown)} (published: after about 20)",
            ),
            Claim(
                text="At base load A100-first draws less than H100 alone",
                held=max(draws["A100 first"]) < min(draws["H100 alone"]),
                shown="; ".join(f"{name} {estimate(each).text(2)} kW" for name, each in draws.items()),
            ),
        ),
        notes=(
            "The simulator has one latency for both variants, so watts per request compare as board powers do; where A100 is "
            "half as fast, it needs more replicas, which the second row shows.",
        ),
    )  # fmt: skip


def _steps(times_s: list[float]) -> str:
    return estimate([time / _TWO.step_s for time in times_s]).text(1)


def _ramp_table(results: list[Result]) -> Table:
    rows = []
    for step in (5, 10, 15, 20, 25, 30):
        at = int(step * _TWO.step_s) - 1
        counts = [
            estimate([float(r.there(variant)[at]) for r in results]).text(1) for variant in (A100, H100)
        ]
        rows.append((str(step), *counts))
    return Table(title="Replicas by step", head=("step", A100, H100), rows=tuple(rows))


def _draw_table(draws: dict[str, list[float]]) -> Table:
    rows = tuple((name, estimate(each).text(2)) for name, each in draws.items())
    return Table(title=f"Draw at base load ({BASE.rate_rps:g} req/s)", head=("fleet", "kW"), rows=rows)
