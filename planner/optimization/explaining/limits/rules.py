"""Rules that may be suspended: replicas that may not go now, places that are kept, ratios."""

from __future__ import annotations

from collections.abc import Iterator

from models.problem import Problem
from models.scenario import Incumbents
from models.variant import Role
from planner.optimization.explaining.limits.counts import with_candidate, with_demand
from planner.optimization.explaining.limits.limit import Ladder, Limit, Side, Use
from planner.optimization.formulation import Formulation
from planner.optimization.formulation.index import Index, moved, replicas, runs
from planner.optimization.program import Goal

__all__ = ["movable", "ratios", "scale_in", "variants"]

_RATIO_STEPS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


def scale_in(problem: Problem) -> Iterator[Limit]:
    """Taking away replicas of a candidate though its saturation analysis forbids it now."""
    for candidate in problem.candidates:
        if candidate.scale_in_permitted or not candidate.current:
            continue
        key = ("safe_scale_in", candidate.id)
        yield Limit(
            family="safe_scale_in",
            key=(candidate.id,),
            value=candidate.current,
            unit="replicas",
            rows=(key,),
            moved=lambda _, candidate=candidate: with_candidate(  # type: ignore[misc]
                problem, candidate.but(scale_in_permitted=True)
            ),
            search=Use(
                lambda _, candidate=candidate: Goal("stay", {replicas(candidate): -1}),  # type: ignore[misc]
                problem,
                frozenset({key}),
                Side.LOWER,
                sign=-1,
            ),
        )


def movable(problem: Problem) -> Iterator[Limit]:
    """Moving replicas that are pinned to their nodes."""
    if problem.incumbents_rule is Incumbents.MOVABLE:
        return
    free = problem.but(incumbents_rule=Incumbents.MOVABLE)

    def goal(formulation: Formulation) -> Goal:
        index: Index = formulation.index
        return Goal("moves", {moved(problem.candidate[name]): 1 for name in sorted(index.tracked)})

    yield Limit(
        family="incumbents",
        key=(),
        value=0,
        unit="moves",
        rows=(("incumbents",), ("placement",)),
        moved=lambda _: free,
        search=Use(goal, free),
    )


def ratios(problem: Problem) -> Iterator[Limit]:
    """A wider ratio of prefill to decode replicas, in steps."""
    for demand in problem.demands:
        ratio = demand.ratio
        for side in ("min", "max") if ratio is not None else ():
            bound = getattr(ratio, side)
            if not bound or ratio is None:
                continue
            wider = (bound * step if side == "max" else bound / step for step in _RATIO_STEPS)
            yield Limit(
                family="ratio",
                key=(demand.service, side),
                value=bound,
                unit="prefill per decode",
                rows=(("ratio", demand.service, side),),
                moved=lambda needed, demand=demand, ratio=ratio, side=side: with_demand(  # type: ignore[misc]
                    problem, demand.but(ratio=ratio.but(**{side: needed}))
                ),
                search=Ladder(tuple(float(f"{value:.4g}") for value in wider)),
            )


def variants(problem: Problem) -> Iterator[Limit]:
    """More variants of a service at once."""
    for demand in problem.demands:
        for role in Role if demand.max_variants is not None else ():
            names = {c.variant for c in problem.candidates_of[demand.service] if c.role is role}
            if demand.max_variants is None or len(names) <= demand.max_variants:
                continue
            key = ("variants", demand.service, role)
            flags = {runs(demand, role, name): 1 for name in sorted(names)}
            yield Limit(
                family="variants",
                key=(demand.service, role),
                value=demand.max_variants,
                unit="variants",
                rows=(key,),
                moved=lambda needed, demand=demand: with_demand(  # type: ignore[misc]
                    problem, demand.but(max_variants=round(needed))
                ),
                search=Use(
                    lambda _, flags=flags: Goal("variants", flags),  # type: ignore[misc]
                    problem,
                    frozenset({key}),
                ),
            )
