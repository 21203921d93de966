"""Rates from measured rows: the smallest measured shape that is at least the asked one.

A row stands for a request shape. A replica that kept its promises with longer inputs and longer outputs
keeps them with shorter ones, so rows of a larger shape are used, never rows of a smaller one.

Whether a row's latencies are means is often not said by the source (``at`` is None). Such a row answers
promises about the mean, which is what a service promises unless it says otherwise. A promise at a
percentile needs a row measured at that percentile or above; such a row answers the mean too when it is
at least the 90th. A service that promises percentiles can therefore be planned with given capacities
or with a profile that says ``at``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from models.explanation import Fact, Reason
from models.performance import MeasuredPoint, Origin, Rating, RatingQuestion, Rows, Unrated
from models.variant import Role
from models.workload import Slo
from planner.performance.given import kv_capacity
from planner.performance.interpolated import rate_between
from planner.performance.ladder import unsaturated
from planner.performance.protocol import Knowledge
from planner.performance.residence import promises, residence_s, resident_tokens

__all__ = ["MeasuredTable", "MeasuredTables", "same_setup"]

_STANDS_FOR_MEAN: Final = 90.0
_NEAREST_SHAPES: Final = 3


@dataclass(frozen=True, slots=True)
class _Limits:
    """KV tokens that requests in flight may hold; None: no limit is known."""

    resident_tokens: float
    rated_tokens: float | None
    surge_tokens: float | None

    def share(self, point: MeasuredPoint, allowed_tokens: float | None) -> float:
        """Share of the row's rate inside ``allowed_tokens``.

        With fewer requests in flight none gets slower, so the rate falls at most in proportion.
        """
        if allowed_tokens is None:
            return 1.0
        return min(1.0, allowed_tokens / (point.concurrency * self.resident_tokens))


class MeasuredTable:
    """Measured rows, indexed once, asked often.

    Args:
        points: rows of one or several profiles; saturated ones are no capacity and are left out.
    """

    def __init__(self, points: Iterable[MeasuredPoint]) -> None:
        index: dict[tuple[str, str], list[MeasuredPoint]] = {}
        for point in _unsaturated(points):
            index.setdefault((point.llm, point.accelerator), []).append(point)
        self._points = {key: tuple(rows) for key, rows in index.items()}

    name = "measured"

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(len(rows) for rows in self._points.values())

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        """The highest rate that a measured row proves, or the first reason why there is none.

        Shapes are tried from the smallest (input + output, then input); the first with a row that keeps
        the SLO decides. Among its rows the highest rate inside tau - gamma of the KV cache is the rated
        one, inside tau the surge. Equal input gives equal output: ties go to the row id.
        """
        rows = [row for row in self._rows(question) if same_setup(row, question)]
        if not rows:
            return Unrated(reason=Reason.NO_MEASUREMENT, facts=self._what_there_is(question))
        enough = [row for row in rows if _covers(row, question)]
        if not enough:
            return Unrated(reason=Reason.NO_MEASUREMENT, facts=_nearest_shapes(rows, question))
        readable = [row for row in enough if _speaks_of(row, question.slo)]
        if not readable:
            return Unrated(reason=Reason.PERCENTILE_NOT_MEASURED, facts=_statistics(enough, question.slo))
        keeping = [row for row in readable if _keeps(row, question)]
        if not keeping:
            return Unrated(reason=Reason.SLO_NOT_MET, facts=_best_seen(readable, question))
        return _best(keeping, question)

    def between(self, question: RatingQuestion) -> Rating | None:
        """The rate between rows that say something of the promises; None: outside their hull."""
        rows = [row for row in self._rows(question) if same_setup(row, question)]
        return rate_between([row for row in rows if _speaks_of(row, question.slo)], question)

    def _rows(self, question: RatingQuestion) -> Iterator[MeasuredPoint]:
        for llm in dict.fromkeys((question.llm.id, *question.llm.aliases)):
            for accelerator in dict.fromkeys((question.accelerator.id, *question.accelerator.aliases)):
                yield from self._points.get((llm, accelerator), ())

    def _what_there_is(self, question: RatingQuestion) -> dict[str, Fact]:
        """What was asked for, and which setups of the same LLM and accelerator have rows."""
        setups = sorted(
            {f"{row.precision} {row.parallelism.label} {row.role}" for row in self._rows(question)}
        )
        variant = question.variant
        asked = f"{question.precision} {variant.parallelism.label} {variant.role}"
        return {
            "llm": question.llm.id,
            "accelerator": question.accelerator.id,
            "asked": f"{asked} {variant.engine}" if variant.engine else asked,
            "measured": "; ".join(setups) or None,
        }


class MeasuredTables:
    """Every profile table: the one that a variant names, else all together.

    Args:
        knowledge: whose profiles are read, and whose choice says how.
    """

    name = "measured"

    def __init__(self, knowledge: Knowledge) -> None:
        self._profiles = knowledge.profiles
        self._interpolates = knowledge.choice.rows is Rows.INTERPOLATED
        self._tables: dict[str | None, MeasuredTable] = {}

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        """Between rows where the scenario wants that and the hull allows it, else as :meth:`MeasuredTable.rate`.

        A table that may not be used has no rows. A promise that only rows of larger shapes break is not broken
        for sure: another source may know.
        """
        table = self._table(question.variant.profile)
        inside = table.between(question) if self._interpolates else None
        if inside is not None:
            return inside
        answer = table.rate(question)
        if isinstance(answer, Unrated) and self._interpolates and answer.reason is Reason.SLO_NOT_MET:
            return answer.but(is_open=True)
        return answer

    def _table(self, name: str | None) -> MeasuredTable:
        """Indexed when it is first asked: many scenarios ask one table, or none."""
        if name not in self._tables:
            names = sorted(self._profiles) if name is None else [name]
            rows = (point for each in names for point in self._profiles.get(each, ()))
            self._tables[name] = MeasuredTable(rows)
        return self._tables[name]


def _unsaturated(points: Iterable[MeasuredPoint]) -> Iterator[MeasuredPoint]:
    """The points without saturated ones, told by rows that differ in their load alone.

    Loads of prefill and decode replicas depend on their partners and make no ladder.
    """
    ladders: dict[object, list[MeasuredPoint]] = {}
    for point in points:
        parallelism = point.parallelism
        key = (
            point.llm, point.accelerator, point.engine, point.engine_version, point.precision, point.kv_precision,
            parallelism.tp, parallelism.pp, parallelism.dp, parallelism.ep, point.role, point.input_tokens,
            point.output_tokens, point.at, point.source,
        )  # fmt: skip
        ladders.setdefault(key, []).append(point)
    for rows in ladders.values():
        yield from unsaturated(rows) if rows[0].role is Role.BOTH else rows


def same_setup(row: MeasuredPoint, question: RatingQuestion) -> bool:
    """Whether a row is of the asked precision, parallelism, role and engine."""
    variant = question.variant
    return (
        row.precision is question.precision
        and row.parallelism == variant.parallelism
        and row.role is variant.role
        and variant.engine in (None, row.engine)
    )


def _covers(row: MeasuredPoint, question: RatingQuestion) -> bool:
    return row.input_tokens >= question.input_tokens and row.output_tokens >= question.output_tokens


def _speaks_of(row: MeasuredPoint, slo: Slo) -> bool:
    if slo.ttft_s is None and slo.itl_s is None and slo.e2e_s is None:
        return True
    if slo.at == "mean":
        return row.at in (None, "mean") or (isinstance(row.at, float) and row.at >= _STANDS_FOR_MEAN)
    return isinstance(row.at, float) and row.at >= slo.at


def _keeps(row: MeasuredPoint, question: RatingQuestion) -> bool:
    """Whether the row keeps every promise that depends on its role."""
    return all(seen <= target for _, seen, target in promises(question, ttft_s=row.ttft_s, itl_s=row.itl_s))


def _best(rows: list[MeasuredPoint], question: RatingQuestion) -> Rating | Unrated:
    """The best rates among the rows of the smallest shape."""
    _, same = next(groupby(sorted(rows, key=_size), key=_size))
    kv_tokens = kv_capacity(question)
    thresholds = question.thresholds
    limits = _Limits(
        resident_tokens=resident_tokens(question),
        rated_tokens=None if kv_tokens is None else (thresholds.tau_kv - thresholds.gamma_kv) * kv_tokens,
        surge_tokens=None if kv_tokens is None else thresholds.tau_kv * kv_tokens,
    )
    if limits.rated_tokens is not None and limits.rated_tokens < limits.resident_tokens:
        facts: dict[str, Fact] = {
            "request_tokens": limits.resident_tokens,
            "kv_tokens_inside_trigger": limits.rated_tokens,
        }
        return Unrated(reason=Reason.REQUEST_DOES_NOT_FIT, facts=facts)
    candidates = tuple(same)
    row = max(
        candidates, key=lambda point: (point.rps * limits.share(point, limits.rated_tokens), _name(point))
    )
    rated = row.rps * limits.share(row, limits.rated_tokens)
    surge = max(point.rps * limits.share(point, limits.surge_tokens) for point in candidates)
    stay = residence_s(row.role, ttft_s=row.ttft_s, itl_s=row.itl_s, output_tokens=question.output_tokens)
    return Rating(
        rated_rps=rated,
        surge_rps=max(rated, surge),
        ttft_s=row.ttft_s,
        itl_s=row.itl_s,
        kv_capacity_tokens=kv_tokens,
        kv_tokens_per_rps=stay * limits.resident_tokens,
        power_w=row.power_w,
        origin=Origin.MEASURED,
        source=_name(row) if kv_tokens is not None else f"{_name(row)}; KV capacity unknown, no KV limit",
    )


def _size(row: MeasuredPoint) -> tuple[int, int]:
    return row.input_tokens + row.output_tokens, row.input_tokens


def _name(row: MeasuredPoint) -> str:
    return f"{row.source}: {row.row}" if row.row else row.source


def _nearest_shapes(rows: list[MeasuredPoint], question: RatingQuestion) -> dict[str, Fact]:
    """The measured shapes that lack least of the asked one."""

    def lacking(row: MeasuredPoint) -> tuple[int, int]:
        less_input = max(0, question.input_tokens - row.input_tokens)
        less_output = max(0, question.output_tokens - row.output_tokens)
        return less_input + less_output, row.input_tokens

    shapes = dict.fromkeys(f"{row.input_tokens}x{row.output_tokens}" for row in sorted(rows, key=lacking))
    return {
        "asked_shape": f"{question.input_tokens}x{question.output_tokens}",
        "nearest_shapes": ", ".join(list(shapes)[:_NEAREST_SHAPES]),
    }


def _statistics(rows: list[MeasuredPoint], slo: Slo) -> dict[str, Fact]:
    measured = sorted(
        {
            "no statistic" if row.at is None else "the mean" if row.at == "mean" else f"p{row.at}"
            for row in rows
        }
    )
    asked = "the mean" if slo.at == "mean" else f"p{slo.at}"
    return {"asked": asked, "measured": ", ".join(measured)}


def _best_seen(rows: list[MeasuredPoint], question: RatingQuestion) -> dict[str, Fact]:
    """For each promise its target and the best that any row shows, s, and whether one row alone breaks it."""
    facts: dict[str, Fact] = {}
    for row in rows:
        for name, seen, target in promises(question, ttft_s=row.ttft_s, itl_s=row.itl_s):
            best = facts.get(f"best_{name}")
            facts[f"best_{name}"] = min(seen, best) if isinstance(best, float) else seen
            facts[f"target_{name}"] = target
    return facts
