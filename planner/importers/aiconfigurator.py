"""AIConfigurator's measured table (``silicon_sample.csv``) -> profile points.

A row is one benchmark run: a backend, an LLM, a system, a layout, a request shape, and the TTFT and TPOT
that were measured at a number of requests in flight. The rate of the run follows from Little's law::

    rps = concurrency / (TTFT + (osl - 1) x TPOT)

*Aggregated* rows describe one replica. *Disaggregated* rows describe ``prefill_num_workers`` and
``decode_num_workers`` that carried that rate together, so each prefill worker carried ``rps / prefill
workers`` and each decode worker ``rps / decode workers``: figures that are proven, though a worker might do
more with better partners. Requests in flight per worker follow from Little's law again, rounded up.

Rows that cannot be used are skipped and counted by reason (:class:`Skip`); cells that cannot be right
are problems of the file, all reported at once. Whether TTFT is a mean is not stated by the table, so
points carry no statistic (``at`` is None).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from models.hardware import Accelerator
from models.ids import VariantId
from models.llm import Llm, Precision
from models.performance import MeasuredPoint
from models.variant import Parallelism, Quantization, Role, Variant
from planner.catalog import Catalog
from planner.importers.aiconfigurator_rows import Layout, RawRow, read_rows
from planner.performance.memory import RESERVE_BYTES, kv_capacity_tokens
from planner.performance.residence import e2e_s, residence_s

__all__ = ["Imported", "Skip", "import_aiconfigurator"]

_GAIN: Final = 1.02
"""A row with more requests in flight must carry 2 % more than every row with fewer, or it is saturated."""
_ACCELERATORS_PER_NODE: Final = 8
_DIGITS: Final = 3
_ACCELERATORS_IN_ID: Final = re.compile(r"_tp(\d+)(?:_0)?_ep(?:none|\d+)")
_Workers = tuple[Role, Parallelism, int]


class Skip(StrEnum):
    """Why a row gives no point."""

    UNKNOWN_LLM = "llm_not_in_catalog"
    UNKNOWN_ACCELERATOR = "accelerator_not_in_catalog"
    NO_PRECISION = "precision_not_stated"
    NO_CONCURRENCY = "concurrency_not_stated"
    NO_WORKERS = "worker_counts_not_stated"
    NO_LAYOUT = "layout_not_stated"
    LAYOUT_IN_DOUBT = "layout_contradicts_itself"
    WEIGHTS_DO_NOT_FIT = "weights_do_not_fit_the_layout"
    KV_DOES_NOT_FIT = "requests_in_flight_exceed_the_kv_cache"
    BEYOND_PEAK = "faster_than_the_peak_of_the_hardware"
    SATURATED = "saturated"


@dataclass(frozen=True, slots=True)
class Imported:
    """Points of a table, and what was left out.

    Attributes:
        points: in the order of the file; the prefill point of a run stands before its decode point.
        skipped: rows left out, by reason.
    """

    points: tuple[MeasuredPoint, ...]
    skipped: Mapping[Skip, int]


@dataclass(frozen=True, slots=True)
class _Run:
    """A row whose LLM, accelerator, precision and layouts are known."""

    row: RawRow
    llm: Llm
    accelerator: Accelerator
    precision: Precision
    workers: tuple[_Workers, ...]

    @property
    def rps(self) -> float:
        """Rate of the whole run, req/s."""
        row = self.row
        return row.concurrency / e2e_s(ttft_s=row.ttft_s, itl_s=row.itl_s, output_tokens=row.output_tokens)

    @property
    def ladder(self) -> object:
        """What runs that differ in concurrency alone have in common."""
        row = self.row
        shape = (row.input_tokens, row.output_tokens)
        return (
            self.llm.id, self.accelerator.id, self.precision, self.workers, row.engine, row.engine_version, shape
        )  # fmt: skip


def import_aiconfigurator(path: Path, catalog: Catalog, *, source: str = "P1") -> Imported:
    """Points of AIConfigurator's measured table.

    Args:
        path: the CSV file.
        catalog: resolves the names of LLMs and systems; a row of others is skipped.
        source: source code that the points carry.

    Raises:
        CatalogError: the file is unreadable or has cells that cannot be right; lists all of them.
    """
    skipped: Counter[Skip] = Counter()
    runs: list[_Run] = []
    for row in read_rows(path):
        run = _run(row, catalog)
        if isinstance(run, Skip):
            skipped[run] += 1
        else:
            runs.append(run)
    kept = _unsaturated(runs)
    skipped[Skip.SATURATED] = len(runs) - len(kept)
    counts = {reason: skipped[reason] for reason in Skip if skipped[reason]}
    return Imported(
        points=tuple(point for run in kept for point in _points(run, source)),
        skipped=MappingProxyType(counts),
    )


def _run(row: RawRow, catalog: Catalog) -> _Run | Skip:
    """The row with its names resolved, or the first reason why it says too little."""
    llm = catalog.find_llm(row.llm)
    if llm is None:
        return Skip.UNKNOWN_LLM
    accelerator = catalog.find_accelerator(row.system)
    if accelerator is None:
        return Skip.UNKNOWN_ACCELERATOR
    if row.precision not in set(Precision):
        return Skip.NO_PRECISION
    if not row.concurrency:
        return Skip.NO_CONCURRENCY
    workers = _workers(row, llm)
    if isinstance(workers, Skip):
        return workers
    run = _Run(row, llm, accelerator, Precision(row.precision), workers)
    return _impossible(run) or run


def _workers(row: RawRow, llm: Llm) -> tuple[_Workers, ...] | Skip:
    """Role, parallelism and number of the workers of a run."""
    if row.aggregated:
        stated: tuple[tuple[Role, Layout, int], ...] = ((Role.BOTH, row.replica, 1),)
    else:
        stated = (
            (Role.PREFILL, row.prefill, row.prefill_workers),
            (Role.DECODE, row.decode, row.decode_workers),
        )
    workers: list[_Workers] = []
    for role, layout, count in stated:
        parallelism = _parallelism(layout, llm)
        if not count:
            return Skip.NO_WORKERS
        if isinstance(parallelism, Skip):
            return parallelism
        workers.append((role, parallelism, count))
    if row.aggregated and _in_doubt(row, workers[0][1]):
        return Skip.LAYOUT_IN_DOUBT
    return tuple(workers)


def _in_doubt(row: RawRow, parallelism: Parallelism) -> bool:
    """Whether an aggregated row describes something else than one engine.

    Aggregated engines of this table stay on one node; wider ones are totals of several workers. Some ids
    name the accelerators, and some of those contradict the columns.
    """
    named = _ACCELERATORS_IN_ID.search(row.id)
    return parallelism.gpus > _ACCELERATORS_PER_NODE or (
        named is not None and int(named[1]) != parallelism.gpus
    )


def _parallelism(layout: Layout, llm: Llm) -> Parallelism | Skip:
    """Parallelism of one worker. Experts are spread over tp x dp, so moe_tp x moe_ep must be as many."""
    if not layout.tp:
        return Skip.NO_LAYOUT
    dp = max(1, layout.dp)
    if llm.moe is None:
        return Parallelism(tp=layout.tp, pp=max(1, layout.pp), dp=dp)
    if not layout.moe_tp or not layout.moe_ep:
        return Skip.NO_LAYOUT
    if layout.moe_tp * layout.moe_ep != layout.tp * dp:
        return Skip.LAYOUT_IN_DOUBT
    return Parallelism(tp=layout.tp, pp=max(1, layout.pp), dp=dp, ep=layout.moe_ep)


def _impossible(run: _Run) -> Skip | None:
    """Why a run cannot have happened as described; it then describes another one, and gives no point.

    The cache is counted at 8 bit, the smallest in use, because the table does not say, and nothing is kept for
    how one engine or another measures itself beyond what all of them need.
    """
    row = run.row
    for role, parallelism, workers in run.workers:
        variant = Variant(
            id=VariantId("imported"),
            accelerator=run.accelerator.id,
            parallelism=parallelism,
            quantization=Quantization(weights=run.precision, kv_cache=Precision.FP8),
            activation_reserve_bytes=RESERVE_BYTES,
        )
        length = row.input_tokens + row.output_tokens
        fit = kv_capacity_tokens(run.llm, run.accelerator, variant, sequence_tokens=length)
        if not fit.fits:
            return Skip.WEIGHTS_DO_NOT_FIT
        rps = run.rps / workers
        held = (
            rps
            * _stay(row, role)
            * (row.input_tokens + (0 if role is Role.PREFILL else row.output_tokens / 2))
        )
        if fit.kv_tokens is not None and held > fit.kv_tokens:
            return Skip.KV_DOES_NOT_FIT
        peak = _peak_flops(run)
        if peak is not None and rps * _flops(run, role) > peak * parallelism.gpus:
            return Skip.BEYOND_PEAK
    return None


def _flops(run: _Run, role: Role) -> float:
    """Work of one request, FLOP: two per parameter that a token visits (attention itself not counted)."""
    tokens = {
        Role.PREFILL: run.row.input_tokens,
        Role.DECODE: run.row.output_tokens,
        Role.BOTH: run.row.input_tokens + run.row.output_tokens,
    }
    return 2.0 * (run.llm.active_parameters or run.llm.parameters) * tokens[role]


def _peak_flops(run: _Run) -> float | None:
    """Dense peak of one accelerator at the precision of the run, FLOP/s; None: not known."""
    accelerator = run.accelerator
    match run.precision:
        case Precision.FP4:
            return accelerator.fp4_flops
        case Precision.FP8:
            return accelerator.fp8_flops
        case Precision.BF16 | Precision.FP16:
            return accelerator.bf16_flops
        case _:
            return None


def _stay(row: RawRow, role: Role) -> float:
    return residence_s(role, ttft_s=row.ttft_s, itl_s=row.itl_s, output_tokens=row.output_tokens)


def _unsaturated(runs: Sequence[_Run]) -> list[_Run]:
    """Runs that carry more than every run of their ladder with fewer requests in flight."""
    ladders: dict[object, list[_Run]] = {}
    for run in runs:
        ladders.setdefault(run.ladder, []).append(run)

    def rises(run: _Run) -> bool:
        below = [other.rps for other in ladders[run.ladder] if other.row.concurrency < run.row.concurrency]
        return not below or run.rps > max(below) * _GAIN

    return [run for run in runs if rises(run)]


def _points(run: _Run, source: str) -> Iterator[MeasuredPoint]:
    row = run.row
    for role, parallelism, workers in run.workers:
        rps = run.rps / workers
        yield MeasuredPoint(
            llm=run.llm.id,
            accelerator=run.accelerator.id,
            engine=row.engine,
            engine_version=row.engine_version,
            precision=run.precision,
            parallelism=parallelism,
            role=role,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            concurrency=row.concurrency if role is Role.BOTH else max(1, math.ceil(rps * _stay(row, role))),
            ttft_s=_rounded(row.ttft_s),
            itl_s=_rounded(row.itl_s),
            rps=_rounded(rps),
            source=source,
            row=row.id,
        )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
