"""Write docs/accuracy.md: how far figures of performance and power are off on rows that no fit has seen.

    FLEETPLAN_TEST_DATA=... python scripts/accuracy.py [FOLDER]

Deterministic: equal data and code give equal bytes. FOLDER (default docs) gets accuracy.md and images/.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from accuracy_charts import draw
from measured_rows import SPLITWISE, measured_points, observations, power_runs, splitwise_draws, test_data

from models.performance import MeasuredPoint
from models.variant import Role
from planner.performance.interpolated import Between, between
from planner.performance.ladder import unsaturated
from planner.performance.power import known_draw
from planner.performance.power.fitting import left_out_draws
from planner.performance.roofline.validation import LeftOut, left_out, weighted_quantile
from planner.planning import known_catalog

_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Miss:
    """One prediction of one figure: whose it is, what was predicted, what was measured."""

    group: str
    figure: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Absolute relative error."""
        return abs(self.predicted / self.measured - 1)


@dataclass(frozen=True, slots=True)
class Goal:
    """What the report promises for one figure of one section."""

    figure: str
    most: float


def main() -> None:
    """Predict, compare, write."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs")
    data, catalog = test_data(), known_catalog()
    points = [p for p in measured_points(data, catalog) if p.role is Role.BOTH] + list(
        catalog.profiles["control-loop"]
    )
    rows = observations(data, catalog)
    by_llm = list(left_out(rows, lambda row: row.llm, same_accelerator=True))
    by_accelerator = list(left_out(rows, lambda row: row.accelerator, same_accelerator=False))
    loads, shapes = list(_left_out_loads(points)), list(_left_out_shapes(points))
    models, accelerators = list(_misses(by_llm, _llm_on)), list(_misses(by_accelerator, _accelerator_of))
    power = [
        Miss(run.llm, "power", watts, run.power_w) for run, watts in left_out_draws(power_runs(data, catalog))
    ]
    scaled = [Miss(f"A100-80GB x{gpus}", "power", *pair) for gpus, *pair in _scaled_power(data)]
    text = _report(
        {
            "loads": loads, "shapes": shapes, "models": models, "accelerators": accelerators,
            "power": power, "scaled": scaled,
        },
        _coverage(by_llm),
        len(rows),
    )  # fmt: skip
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "accuracy.md").write_text(text, encoding="utf-8")
    for name, misses in (("roofline", models), ("interpolation", loads), ("power", power)):
        draw(
            name,
            [(m.group, m.figure, m.measured, m.predicted) for m in misses],
            folder / "images" / f"accuracy-{name}.svg",
        )
    print(f"{folder / 'accuracy.md'} written")


def _ladders(
    points: Iterable[MeasuredPoint],
) -> Iterator[tuple[list[MeasuredPoint], dict[tuple[int, int], list[MeasuredPoint]]]]:
    """Rows of each setup, and of them the unsaturated ones by shape."""
    setups: dict[object, list[MeasuredPoint]] = defaultdict(list)
    for p in points:
        key = (
            p.llm,
            p.accelerator,
            p.engine,
            p.engine_version,
            p.precision,
            p.parallelism.label,
            p.at,
            p.source,
        )
        setups[key].append(p)
    for rows in setups.values():
        shapes: dict[tuple[int, int], list[MeasuredPoint]] = defaultdict(list)
        for row in rows:
            shapes[row.input_tokens, row.output_tokens].append(row)
        yield rows, {shape: list(unsaturated(those)) for shape, those in shapes.items()}


def _left_out_loads(points: Iterable[MeasuredPoint]) -> Iterator[Miss]:
    """Every load between the lowest and the highest of its ladder, with all rows of that load left out."""
    for _, shapes in _ladders(points):
        for (inputs, outputs), ladder in shapes.items():
            for load in sorted({row.concurrency for row in ladder})[1:-1]:
                found = between(
                    (r for r in ladder if r.concurrency != load), input_tokens=inputs, output_tokens=outputs
                )
                if found is not None:
                    yield from _compared(found, [row for row in ladder if row.concurrency == load])


def _left_out_shapes(points: Iterable[MeasuredPoint]) -> Iterator[Miss]:
    """Every shape that lies inside the hull of the other shapes of its setup, with all its rows left out."""
    for rows, shapes in _ladders(points):
        for (inputs, outputs), ladder in shapes.items():
            others = (row for row in rows if (row.input_tokens, row.output_tokens) != (inputs, outputs))
            found = between(others, input_tokens=inputs, output_tokens=outputs)
            if found is not None:
                low, high = found.concurrency[0], found.concurrency[-1]
                yield from _compared(found, [row for row in ladder if low <= row.concurrency <= high])


def _compared(found: Between, rows: Sequence[MeasuredPoint]) -> Iterator[Miss]:
    loads = np.log(found.concurrency)
    for row in rows:
        at = math.log(row.concurrency)
        for figure, values, measured in (
            ("ITL", found.itl_s, row.itl_s), ("TTFT", found.ttft_s, row.ttft_s), ("req/s", found.rps, row.rps),
        ):  # fmt: skip
            yield Miss(row.llm, figure, float(np.exp(np.interp(at, loads, np.log(values)))), measured)


def _llm_on(one: LeftOut) -> str:
    return f"{one.row.llm} on {one.row.accelerator}"


def _accelerator_of(one: LeftOut) -> str:
    return f"{one.row.accelerator}: {one.row.llm}"


def _misses(unseen: Iterable[LeftOut], group: Callable[[LeftOut], str]) -> Iterator[Miss]:
    for one in unseen:
        yield Miss(group(one), "ITL", one.itl_s, one.row.itl_s)
        if one.row.ttft_s is not None:
            yield Miss(group(one), "TTFT", one.ttft_s, one.row.ttft_s)
        if one.row.rps is not None:
            yield Miss(group(one), "req/s", one.rps, one.row.rps)


def _scaled_power(data: Path) -> Iterator[tuple[int, float, float]]:
    """Accelerators, predicted and measured draw of A100, which the fit on H100 has never seen; W per accelerator."""
    known = known_draw()
    accelerator = known_catalog().accelerators["A100-80GB"]
    tdp = accelerator.tdp_w or 0.0
    for used, gpus, share in splitwise_draws(data, accelerator):
        yield gpus, known.power_w(tdp, known.idle_share * tdp, used, gpus=gpus), share * tdp


def _coverage(unseen: Sequence[LeftOut]) -> dict[float, float]:
    """Share of rows of an unseen LLM that were no slower than the quantile from all other LLMs says."""
    groups = sorted({_llm_on(one) for one in unseen})
    logs = {g: [math.log(one.row.itl_s / one.itl_s) for one in unseen if _llm_on(one) == g] for g in groups}
    found: dict[float, float] = {}
    for level in (0.5, 0.75, 0.9, 0.95):
        shares = []
        for group in groups:
            others = [(value, 1 / len(logs[g])) for g in groups if g != group for value in logs[g]]
            most = weighted_quantile([value for value, _ in others], [weight for _, weight in others], level)
            shares.append(statistics.fmean(value <= most for value in logs[group]))
        found[level] = statistics.fmean(shares)
    return found


def _by_group(misses: Iterable[Miss], figure: str) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for miss in misses:
        if miss.figure == figure:
            groups[miss.group].append(miss.error)
    return dict(sorted(groups.items()))


def _percent(share: float) -> str:
    return f"{share * _PERCENT:.1f} %"


_SUMMARY = (
    ("interpolation, left-out load", "loads", (Goal("ITL", 0.08), Goal("TTFT", 0.20), Goal("req/s", 0.08))),
    (
        "interpolation, left-out shape",
        "shapes",
        (Goal("ITL", math.nan), Goal("TTFT", math.nan), Goal("req/s", math.nan)),
    ),
    (
        "roofline, left-out LLM, accelerator known",
        "models",
        (Goal("ITL", 0.20), Goal("TTFT", math.nan), Goal("req/s", 0.20)),
    ),
    (
        "roofline, left-out accelerator",
        "accelerators",
        (Goal("ITL", 0.25), Goal("TTFT", math.nan), Goal("req/s", math.nan)),
    ),
    ("power on H100, left-out LLM", "power", (Goal("power", 0.10),)),
    ("power on A100, scaled from H100 by TDP", "scaled", (Goal("power", math.nan),)),
)


def _summary(sections: dict[str, list[Miss]]) -> Iterator[str]:
    yield "| on data that the fit has not seen | figure | median of MAPE | goal | 90th percentile of errors | worst group | groups | rows |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for title, name, goals in _SUMMARY:
        for goal in goals:
            groups = _by_group(sections[name], goal.figure)
            means = [statistics.fmean(errors) for errors in groups.values()]
            every = [error for errors in groups.values() for error in errors]
            target = "–" if math.isnan(goal.most) else f"≤ {goal.most:.0%}".replace("%", " %")
            cells = (
                title, goal.figure, f"**{_percent(statistics.median(means))}**", target,
                _percent(float(np.quantile(every, 0.9))), _percent(max(means)), str(len(groups)), str(len(every)),
            )  # fmt: skip
            yield f"| {' | '.join(cells)} |"


def _details(misses: Sequence[Miss], figures: Sequence[str]) -> Iterator[str]:
    yield f"| group | {' | '.join(f'{figure}: rows | MAPE | median | worst' for figure in figures)} |"
    yield f"|---|{'--:|' * (4 * len(figures))}"
    tables = [_by_group(misses, figure) for figure in figures]
    for group in sorted({name for table in tables for name in table}):
        cells: list[str] = [group]
        for table in tables:
            errors = table.get(group)
            if errors is None:
                cells += ["0", "–", "–", "–"]
            else:
                cells += [
                    str(len(errors)), _percent(statistics.fmean(errors)), _percent(statistics.median(errors)), _percent(max(errors)),
                ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def _report(sections: dict[str, list[Miss]], coverage: dict[float, float], rows: int) -> str:
    accelerators = sections["accelerators"]
    per_accelerator = {
        name: statistics.median(
            statistics.fmean(errors)
            for group, errors in _by_group(accelerators, "ITL").items()
            if group.startswith(f"{name}:")
        )
        for name in sorted({miss.group.partition(":")[0] for miss in accelerators})
    }
    latencies = ("ITL", "TTFT", "req/s")
    return TEXT.format(
        summary="\n".join(_summary(sections)),
        rows=rows,
        accelerators="; ".join(f"{name} {_percent(error)}" for name, error in per_accelerator.items()),
        coverage="; ".join(f"{level:.0%} → {share:.0%}" for level, share in coverage.items()),
        loads="\n".join(_details(sections["loads"], latencies)),
        shapes="\n".join(_details(sections["shapes"], latencies)),
        models="\n".join(_details(sections["models"], latencies)),
        by_accelerator="\n".join(_details(accelerators, ("ITL",))),
        power="\n".join(_details([*sections["power"], *sections["scaled"]], ("power",))),
        splitwise=SPLITWISE,
    )


TEXT = (Path(__file__).parent / "accuracy.md.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
