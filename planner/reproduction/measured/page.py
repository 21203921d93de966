"""``measured-vllm``: recorded runs of vLLM, replayed, as a section of the page of reproductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from models.reproduction import Claim, Origin, Parameter, Picture, Point, Reproduction, Table
from planner.errors import ConfigurationError
from planner.planning import known_catalog
from planner.reproduction.measured.comparing import (
    GOALS,
    Comparison,
    compare_runs,
    compare_simpler_engines,
)
from planner.reproduction.measured.runs import Engine
from planner.settings import load_settings

if TYPE_CHECKING:
    from planner.reproduction.measured.runs import Floats

__all__ = ["NAME", "data_folder", "measured_vllm"]

NAME: Final = "measured-vllm"
_SOURCE: Final = (
    "casys-kaist/LLMServingSim, bench/examples @5daddb2: vLLM 0.19, 300 requests each, kernel profiles"
)
_PERCENT: Final = 100.0
_MS: Final = 1e3


def data_folder() -> Path | None:
    """The folder of test data, which is not shipped; None: nobody says where it is."""
    return load_settings().test_data


def measured_vllm(seeds: int) -> Reproduction:
    """Each run with each profile that its data allow. Nothing here is left to chance, so that seeds change nothing.

    Raises:
        ConfigurationError: the data are not there, or are not of their kind.
    """
    folder = data_folder()
    if folder is None:
        message = "the recorded runs are not shipped: let FLEETPLAN_TEST_DATA name the folder that has perf/vllm_runs"
        raise ConfigurationError(message)
    catalog = known_catalog()
    compared, simpler = list(compare_runs(folder, catalog)), list(compare_simpler_engines(folder, catalog))
    return Reproduction(
        name=NAME,
        title="Recorded runs of vLLM, replayed with the same requests",
        source=_SOURCE,
        seeds=seeds,
        parameters=tuple(_parameters(compared)),
        tables=(
            *(_table(compared, part, title="Figures") for part in compared[0].parts),
            *(
                _table(simpler, part, title="The engine told more simply, kernel times")
                for part in simpler[0].parts
            ),
        ),
        pictures=(_in_flight(compared), _first_tokens(compared)),
        claims=tuple(_claim(each, part) for each in compared for part in each.parts),
        notes=_NOTES,
    )


_NOTES: Final = (
    "**What is compared.** Arrivals and lengths are those of the run, request by request, and the engine has the options "
    "of the run. First tokens count from the client's arrival; the clocks of client and engine are set against each other "
    "by the request that was queued soonest. ITL is the mean time per output token of each request, since single tokens "
    "were not recorded. The second half of the requests is on its own because no fit has looked at its tokens; which form is "
    "fitted, and how residuals weigh, was settled with both runs at hand.",
    "**What it takes** is in the last table: steps are composed one ahead (asynchronous scheduling), so that whoever "
    "comes is seen a step later; and attention of a chunk and of decoding requests in one kernel call takes longer than "
    "both alone, as the kernel times show.",
    "**What is left out.** The two data-parallel ranks of Qwen3-30B-A3B wait for each other in every step. They are "
    "replayed as one batch with the seats and token budgets of both, hence never with one rank full beside one that is "
    "not: first tokens under load come early there.",
)


def _claim(each: Comparison, part: str) -> Claim:
    goals = " and ".join(
        f"{what} within {goal.most * _PERCENT:.0f} %"
        for what, goal in (("throughput", GOALS[0]), ("TTFT and ITL", GOALS[-1]))
    )
    shown = ", ".join(f"{goal.title} {_percent(each.error(part, goal.figure))}" for goal in GOALS)
    return Claim(
        text=f"{each.run.llm}, {each.profile.name}, {part}: {goals}", held=not each.missed(part), shown=shown
    )


def _percent(share: float) -> str:
    return f"{share * _PERCENT:+.1f} %"


def _table(compared: Sequence[Comparison], part: str, *, title: str) -> Table:
    rows: list[tuple[str, ...]] = []
    for each in compared:
        measured, replayed = each.parts[part]
        if not rows or rows[-1][0].split(":")[0] != each.run.llm:
            rows.append(
                (f"{each.run.llm}: measured", *(_shown(getattr(measured, g.figure), g.figure) for g in GOALS))
            )
        cells = (
            f"{_shown(getattr(replayed, g.figure), g.figure)} ({_percent(each.error(part, g.figure))})"
            for g in GOALS
        )
        rows.append((f"{each.run.llm}: {each.profile.name}", *cells))
    return Table(title=f"{title}: {part}", head=("", *(goal.title for goal in GOALS)), rows=tuple(rows))


def _shown(value: float, figure: str) -> str:
    if not figure.endswith("_s") or figure.endswith("per_s"):
        return f"{value:,.0f}"
    return f"{value * _MS:.1f} ms" if value < 1.0 else f"{value:.2f} s"


def _parameters(compared: Sequence[Comparison]) -> Iterator[Parameter]:
    seen: set[str] = set()
    for each in compared:
        llm, engine = each.run.llm, each.engine
        if llm not in seen:
            seen.add(llm)
            yield from _engine(llm, engine)
        if each.profile.parameters:
            value = ", ".join(f"{name} {seconds:.3g}" for name, seconds in each.profile.parameters.items())
            yield Parameter(
                name=f"{llm}: {each.profile.name}",
                value=f"{value} (s)",
                origin=Origin.FITTED,
                why="least robust squares over latencies of the first half only",
            )


def _engine(llm: str, engine: Engine) -> Iterator[Parameter]:
    options = engine.run.options
    value = (
        f"{options.max_num_seqs} sequences and {options.max_num_batched_tokens:,} tokens per step of a rank, "
        f"{options.ranks} rank{'s' if options.ranks > 1 else ''}, {options.block_tokens} tokens per block"
    )
    yield Parameter(
        name=f"{llm}: engine", value=value, origin=Origin.SOURCE, why=f"{engine.run.name}_meta.json"
    )
    recorded = options.kv_blocks is not None
    yield Parameter(
        name=f"{llm}: KV cache",
        value=f"{engine.kv_blocks:,} blocks",
        origin=Origin.SOURCE if recorded else Origin.CHOSEN,
        why="recorded" if recorded else "memory model; not recorded, and never near full in these runs",
    )


def _in_flight(compared: Sequence[Comparison]) -> Picture:
    """Requests that run and wait, second by second."""
    points: list[Point] = []
    for each in _best(compared):
        lines = (("measured", each.measured), ("twin", each.replayed))
        for series, timeline in lines:
            times = np.arange(0.0, timeline.last_s.max() + 1.0)
            for what, since, until in (
                ("running", timeline.started_s, timeline.last_s),
                ("waiting", timeline.arrival_s, timeline.started_s),
            ):
                counts = _present(times, since, until)
                points += [
                    Point(x=float(x), y=float(y), series=f"{what}, {series}", panel=each.run.llm)
                    for x, y in zip(times, counts, strict=True)
                ]
    return Picture(
        name="measured-vllm-requests",
        title="Requests in the engine, measured and in the twin",
        kind="lines",
        x="time, s",
        y="requests",
        points=tuple(points),
    )


def _present(times: Floats, since: Floats, until: Floats) -> Floats:
    """How many intervals [since, until) hold each time."""
    began, ended = (np.searchsorted(np.sort(each), times, side="right") for each in (since, until))
    return (began - ended).astype(np.float64)


def _first_tokens(compared: Sequence[Comparison]) -> Picture:
    """Time to first token by arrival."""
    points = [
        Point(x=float(x), y=float(y), series=series, panel=each.run.llm)
        for each in _best(compared)
        for series, timeline in (("measured", each.measured), ("twin", each.replayed))
        for x, y in zip(timeline.arrival_s, timeline.ttft_s, strict=True)
    ]
    return Picture(
        name="measured-vllm-ttft",
        title="Time to first token of each request",
        kind="lines",
        x="arrival, s",
        y="TTFT, s",
        points=tuple(points),
    )


def _best(compared: Sequence[Comparison]) -> list[Comparison]:
    """One per run: the profile of which least was fitted on the run itself."""
    first: dict[str, Comparison] = {}
    for each in compared:
        first.setdefault(each.run.name, each)
    return list(first.values())
