"""How load falls on the replicas of a service: as rated, or as a scheduler that equalizes KV saturation splits it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from models.problem import PATHS, Candidate, Demand
from models.report import CandidateFigures
from models.workload import Routing, ServiceKind
from planner.referee.by_length import replicas_busy
from planner.referee.index import Index
from planner.referee.money_power import cost_of
from planner.referee.tolerance import RELATIVE_TOLERANCE, exact

__all__ = ["candidate_figures", "overloads"]

ZERO = Fraction(0)


def candidate_figures(index: Index, demand: Demand) -> Iterator[CandidateFigures]:
    """Figures of the candidates of a service that run. Load is the service's own, without that of guests.

    Mixed: load in proportion to μ_c·n_c (batch: σ_c·n_c). By length: as the solution routes it.
    """
    paths = {role: path for path in index.paths(demand.service) for role in PATHS[path]}
    roles = sorted({candidate.role for candidate in index.of_service[demand.service]})
    for role in roles:
        running = index.running.get((demand.service, role), [])
        load = index.load_on(demand, paths[role]) if role in paths else ZERO
        if demand.routing is Routing.BY_LENGTH:
            yield from (_by_length(index, demand, candidate) for candidate in running)
        else:
            yield from _mixed(index, demand, (running, load))


def overloads(figures: Sequence[CandidateFigures]) -> tuple[CandidateFigures, ...]:
    """Candidates that would be sent more than they are rated at if KV saturation were equalized."""
    limit = 1 + float(RELATIVE_TOLERANCE)
    return tuple(
        one for one in figures if one.saturating_load_share is not None and one.saturating_load_share > limit
    )


def _rated(demand: Demand, candidate: Candidate) -> Fraction:
    return exact(candidate.surge_rps if demand.kind is ServiceKind.BATCH else candidate.rated_rps)


def _mixed(
    index: Index, demand: Demand, running_load: tuple[list[Candidate], Fraction]
) -> Iterator[CandidateFigures]:
    running, load = running_load
    rated = [_rated(demand, c) * index.count(c) for c in running]
    total = sum(rated, ZERO)
    weights = [_kv_weight(index, c) for c in running]
    known = [weight for weight in weights if weight is not None]
    all_weights = sum(known, ZERO) if len(known) == len(weights) else ZERO
    for candidate, capacity, weight in zip(running, rated, weights, strict=True):
        equalized = (
            float(load * weight / all_weights / capacity) if weight is not None and all_weights else None
        )
        yield _figures(index, candidate, (float(load * capacity / total), float(load / total)), equalized)


def _kv_weight(index: Index, candidate: Candidate) -> Fraction | None:
    """K_c·n_c/kv_c: req/s at which the KV cache of all replicas is full; None: unknown, or no KV is held."""
    if candidate.kv_capacity_tokens is None or not candidate.kv_tokens_per_rps:
        return None
    return exact(candidate.kv_capacity_tokens) * index.count(candidate) / exact(candidate.kv_tokens_per_rps)


def _by_length(index: Index, demand: Demand, candidate: Candidate) -> CandidateFigures:
    routed = index.routed.get(candidate.id, {})
    load = sum((exact(b.arrival_rps) * routed.get(b.id, ZERO) for b in demand.buckets), ZERO)
    busy = replicas_busy(index, demand, candidate, surge=demand.kind is ServiceKind.BATCH)
    return _figures(index, candidate, (float(load), float(busy / index.count(candidate))), None)


def _figures(
    index: Index, candidate: Candidate, load: tuple[float, float], equalized: float | None
) -> CandidateFigures:
    n = index.count(candidate)
    return CandidateFigures(
        candidate=candidate.id,
        replicas=n,
        cost=float(cost_of(index, candidate)),
        power_w=None if candidate.power_w is None else float(exact(candidate.power_w) * n),
        load_rps=load[0],
        utilization=load[1],
        saturating_load_share=equalized,
    )
