"""What may be had a little more of, step by step: the questions that :mod:`worth` answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from models.explanation import Fact
from models.problem import Demand, Problem
from models.scenario import Mode
from models.workload import ServiceKind
from planner.optimization.explaining.limits import Limit, Rerate, budgets, counts, hardware, promises
from planner.optimization.explaining.limits.promises import SLO_STEPS

__all__ = ["GPU_STEPS", "POWER_STEP_W", "SPEND_STEP_USD_PER_H", "Move", "moves_of"]

GPU_STEPS: Final = 64
"""Steps at most that are tried."""

POWER_STEP_W: Final = 10_000.0
SPEND_STEP_USD_PER_H: Final = 100.0
_NOTCH_SHARE: Final = 0.05
_NOTCHES: Final = 10


@dataclass(frozen=True)
class Move:
    """A limit and its steps.

    Attributes:
        family: as of :class:`Limit`.
        key: which limit.
        limit: where it stands.
        unit: of the limit and of amounts.
        steps: how many are tried at most.
        amount: how far the limit is moved in so many steps.
        problem: the problem after so many steps; None where nobody can say, or nothing changes.
        facts: what one step means beyond its amount.
    """

    family: str
    key: tuple[str, ...]
    limit: float
    unit: str
    steps: int
    amount: Callable[[int], float]
    problem: Callable[[int], Problem | None]
    facts: Callable[[], Mapping[str, Fact]] = field(default=dict)


def moves_of(problem: Problem, rerate: Rerate | None) -> Iterator[Move]:
    """What is shared first, then what each service promises."""
    yield from _pools(problem)
    yield from (_by(limit, 1.0) for limit in hardware.more_nodes(problem))
    yield from (_by(limit, POWER_STEP_W) for limit in budgets.power(problem))
    yield from (_by(limit, SPEND_STEP_USD_PER_H) for limit in budgets.spend(problem))
    yield from (_by(limit, 1.0) for limit in budgets.quotas(problem))
    yield from (_by(limit, 1.0) for limit in counts.changes(problem))
    yield from _headroom(problem)
    yield from (_slo(limit) for limit in promises.slo(problem, rerate))


def _pools(problem: Problem) -> Iterator[Move]:
    """One GPU after the other, where GPUs are a limit."""
    if problem.mode is not Mode.CONSTRAINED:
        return
    for pool in problem.pools:
        endless = pool.growth is not None and pool.growth.max_nodes is None
        if not endless and any(candidate.pool == pool.id for candidate in problem.candidates):
            yield Move(
                family="gpus",
                key=(pool.id,),
                limit=hardware.usable_gpus(pool),
                unit="GPUs",
                steps=GPU_STEPS,
                amount=float,
                problem=lambda steps, pool=pool: hardware.with_new_gpus(problem, pool, steps),  # type: ignore[misc]
            )


def _by(limit: Limit, step: float) -> Move:
    return Move(
        family=limit.family,
        key=limit.key,
        limit=limit.value,
        unit=limit.unit,
        steps=GPU_STEPS,
        amount=lambda steps: steps * step,
        problem=lambda steps: limit.moved(limit.value + steps * step),
    )


def _headroom(problem: Problem) -> Iterator[Move]:
    """Less headroom: five points of a relative one, a tenth of any other."""
    for demand in problem.demands:
        way = promises.headroom_way(demand)
        if way is not None and demand.kind is not ServiceKind.BATCH:
            yield _less_headroom(problem, demand, way)


def _less_headroom(problem: Problem, demand: Demand, way: str) -> Move:
    kept = float(getattr(demand.headroom, way))
    notch = _NOTCH_SHARE if way == "relative" else kept / _NOTCHES

    def amount(steps: int) -> float:
        return float(f"{min(kept, steps * notch):.6g}")

    return Move(
        family="headroom",
        key=(demand.service,),
        limit=kept,
        unit={"relative": "share", "burst_rps": "req/s"}.get(way, "tokens"),
        steps=ceil(kept / notch - 1e-9),
        amount=amount,
        problem=lambda steps: promises.with_headroom(
            problem, demand, float(f"{max(0.0, kept - amount(steps)):.6g}")
        ),
    )


def _slo(limit: Limit) -> Move:
    return Move(
        family=limit.family,
        key=limit.key,
        limit=limit.value,
        unit=limit.unit,
        steps=len(SLO_STEPS),
        amount=lambda steps: SLO_STEPS[steps - 1],
        problem=lambda steps: limit.moved(SLO_STEPS[steps - 1]),
        facts=lambda: limit.facts(SLO_STEPS[0]),
    )
