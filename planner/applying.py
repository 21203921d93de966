"""A relaxation put into the scenario that it was found for: the limit, moved as far as is needed.

A relaxation speaks of the problem, a person of the scenario. Where a field of the scenario is coarser than the row of
the problem (a step of a variant counts in every pool), the field is moved: what comes of it is at least as loose, so
a plan that was verified for the relaxation stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import lcm
from typing import Any, Final, TypeVar

from models.explanation import Relaxation
from models.hardware import NodeGrowth, Pool
from models.ids import CandidateId, PoolId, ServiceId
from models.problem import Candidate, Problem
from models.scenario import Incumbents, Scenario
from models.value import Value
from models.variant import Role, Variant
from models.workload import Service
from planner.errors import ConfigurationError, Finding

__all__ = ["applied"]

_PROMISES: Final = ("ttft_s", "itl_s", "e2e_s")
_PLACES: Final = (
    ("accelerators", "accelerator"),
    ("pools", "id"),
    ("regions", "region"),
    ("clusters", "cluster"),
)
"""Lists of the places of a service, and the field of a pool that each of them names."""

_Part = TypeVar("_Part", bound=Value)

_OF_VARIANT: Final = 2
"""Names in the key of a bound on a variant: its service and itself."""


def applied(scenario: Scenario, problem: Problem, relaxation: Relaxation) -> Scenario:
    """The scenario with one limit moved as far as a relaxation says.

    Args:
        scenario: what the problem was sized from.
        problem: whose report holds the relaxation.
        relaxation: of that report.

    Raises:
        ConfigurationError: the scenario has no such limit, or no field of it can say this.
    """
    move = _MOVES.get(relaxation.family)
    if move is None:
        raise _refused(relaxation, f"a relaxation of {relaxation.family!r}", ", ".join(sorted(_MOVES)))
    return move(scenario, problem, relaxation)


def _refused(relaxation: Relaxation, found: str, allowed: str) -> ConfigurationError:
    path = " / ".join((relaxation.family, *relaxation.key))
    return ConfigurationError.from_findings([Finding("", None, path, found, allowed)])


# Hardware.


def _gpus(scenario: Scenario, problem: Problem, relaxation: Relaxation) -> Scenario:
    """Nodes that may be added, none of them smaller than those that the relaxation was verified with.

    It was verified with nodes that hold one pod of a size that divides the new GPUs; nodes of the least common
    multiple of all such sizes hold at least as many pods of each.
    """
    more = round(relaxation.needed - relaxation.limit)
    sizes = {c.gpus_per_pod for c in problem.candidates if c.pool == relaxation.key[0]}
    size = lcm(*(size for size in sizes if more % size == 0)) if more > 0 else 0
    if not size:
        raise _refused(relaxation, f"{more} more GPUs", "more GPUs than there are")
    growth = NodeGrowth(gpus_per_node=size, max_nodes=more // size)
    return _with_pool(scenario, relaxation, lambda pool: pool.but(growth=growth))


def _nodes(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    def grown(pool: Pool) -> Pool:
        if pool.growth is None:
            raise _refused(relaxation, "a pool that does not grow", "a pool with growth")
        return pool.but(growth=pool.growth.but(max_nodes=round(relaxation.needed)))

    return _with_pool(scenario, relaxation, grown)


# Budgets.


def _quota(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    return _with_budget(scenario, relaxation, "quotas", {"gpus": round(relaxation.needed)})


def _power(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    return _with_budget(scenario, relaxation, "power", {"cap_w": relaxation.needed})


def _spend(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    return scenario.but(limits=scenario.limits.but(spend_usd_per_h=relaxation.needed))


def _incumbents(scenario: Scenario, _: Problem, __: Relaxation) -> Scenario:
    return scenario.but(limits=scenario.limits.but(incumbents=Incumbents.MOVABLE))


# Counts.


def _bounds(scenario: Scenario, problem: Problem, relaxation: Relaxation) -> Scenario:
    count = round(relaxation.needed)
    changes = {"min_replicas" if relaxation.needed < relaxation.limit else "max_replicas": count}
    if len(relaxation.key) == _OF_VARIANT:
        service, variant = relaxation.key
        return _with_variant(scenario, relaxation, (service, variant), lambda old: old.but(**changes))
    if ServiceId(relaxation.key[0]) in problem.demand:
        return _with_service(scenario, relaxation, lambda service: service.but(**changes))
    return _open_place(scenario, _candidate(problem, relaxation), relaxation)


def _open_place(scenario: Scenario, candidate: Candidate, relaxation: Relaxation) -> Scenario:
    """A place that the lists of a service forbid, where its replicas run all the same and may stay."""
    pool = next((pool for pool in scenario.pools if pool.id == candidate.pool), None)
    if pool is None or candidate.unrated:
        raise _refused(relaxation, "replicas that nothing rates", "a capacity of the variant")

    def opened(service: Service) -> Service:
        lists: dict[str, Any] = {"pin_accelerator": False}
        for name, field in _PLACES:
            own = getattr(pool, field)
            denied, allowed = (getattr(service.places, f"{rule}_{name}") for rule in ("deny", "allow"))
            lists[f"deny_{name}"] = tuple(each for each in denied if each != own)
            lists[f"allow_{name}"] = _including(allowed, own)
        lists["residency"] = _including(service.places.residency, pool.residency)
        return service.but(places=service.places.but(**lists))

    place = (candidate.service, candidate.variant)
    wider = _with_service(scenario, relaxation, opened, name=candidate.service)
    return _with_variant(
        wider, relaxation, place, lambda variant: variant.but(pools=_including(variant.pools, pool.id))
    )


def _including(allowed: tuple[Any, ...], own: Any) -> tuple[Any, ...]:  # noqa: ANN401 - names of any kind
    """An allow list that has an entry; an empty one allows everything, and so does one for what has no name."""
    if not allowed or own in allowed:
        return allowed
    return () if own is None else (*allowed, own)


def _change(scenario: Scenario, problem: Problem, relaxation: Relaxation) -> Scenario:
    if not relaxation.key:
        limits = scenario.limits.but(max_changes=round(relaxation.needed))
        return scenario.but(limits=limits)
    candidate = _candidate(problem, relaxation)

    def wider(variant: Variant) -> Variant:
        """Steps up and down that are as small as the limit was: it does not say which of them it is."""
        steps = ("max_step_up", "max_step_down")
        stood = [name for name in steps if getattr(variant, name) == round(relaxation.limit)]
        return variant.but(**dict.fromkeys(stood, round(relaxation.needed)))

    return _with_variant(scenario, relaxation, (candidate.service, candidate.variant), wider)


def _variants(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    most = round(relaxation.needed)
    return _with_service(scenario, relaxation, lambda service: service.but(max_variants=most))


def _ratio(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    side = relaxation.key[-1]

    def wider(service: Service) -> Service:
        if service.ratio is None:
            raise _refused(relaxation, "a service without a ratio", "a service with one")
        return service.but(ratio=service.ratio.but(**{side: relaxation.needed}))

    return _with_service(scenario, relaxation, wider)


def _scale_in(scenario: Scenario, problem: Problem, relaxation: Relaxation) -> Scenario:
    """Replicas may go: their saturation is not looked at any more.

    What nothing rates is kept for another reason; it may go where its variant may not run in that pool.
    """
    candidate = _candidate(problem, relaxation)
    if candidate.unrated:
        return _closed_place(scenario, candidate, relaxation)
    roles = {
        (service.id, variant.id): variant.role
        for service in scenario.services
        for variant in service.variants
    }
    running = tuple(
        row.but(details=tuple(each.but(kv_usage=None, queue=None) for each in row.details))
        if row.service == candidate.service
        and roles.get((row.service, row.variant), Role.BOTH) is candidate.role
        else row
        for row in scenario.fleet.running
    )
    return scenario.but(fleet=scenario.fleet.but(running=running))


def _closed_place(scenario: Scenario, candidate: Candidate, relaxation: Relaxation) -> Scenario:
    def elsewhere(variant: Variant) -> Variant:
        others = tuple(
            pool.id
            for pool in scenario.pools
            if pool.accelerator == variant.accelerator
            and pool.id != candidate.pool
            and (not variant.pools or pool.id in variant.pools)
        )
        if not others:
            raise _refused(relaxation, "replicas that nothing rates", "a capacity, or a variant taken out")
        return variant.but(pools=others)

    return _with_variant(scenario, relaxation, (candidate.service, candidate.variant), elsewhere)


# Promises.


def _headroom(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    way = {"share": "relative", "req/s": "burst_rps"}.get(relaxation.unit, "kv_tokens")
    kept = {way: relaxation.needed if relaxation.needed else None}
    return _with_service(
        scenario, relaxation, lambda service: service.but(headroom=service.headroom.but(**kept))
    )


def _survive(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    def lowered(service: Service) -> Service:
        promise = service.survive
        kept = None if promise is None or not relaxation.needed else promise.but(share=relaxation.needed)
        return service.but(survive=kept)

    return _with_service(scenario, relaxation, lowered)


def _slo(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    def looser(service: Service) -> Service:
        promised = {name: value for name in _PROMISES if (value := getattr(service.slo, name)) is not None}
        new = {
            name: relaxation.facts.get(name) or float(f"{value * relaxation.needed:.6g}")
            for name, value in promised.items()
        }
        return service.but(slo=service.slo.but(**new))

    return _with_service(scenario, relaxation, looser)


def _demand(scenario: Scenario, _: Problem, relaxation: Relaxation) -> Scenario:
    def less(service: Service) -> Service:
        share = relaxation.needed / relaxation.limit if relaxation.limit else 0.0
        return service.but(
            buckets=tuple(each.but(arrival_rps=each.arrival_rps * share) for each in service.buckets)
        )

    return _with_service(scenario, relaxation, less)


_MOVES: Final[Mapping[str, Callable[[Scenario, Problem, Relaxation], Scenario]]] = {
    "gpus": _gpus,
    "nodes": _nodes,
    "quota": _quota,
    "power": _power,
    "spend": _spend,
    "incumbents": _incumbents,
    "bounds": _bounds,
    "change": _change,
    "variants": _variants,
    "ratio": _ratio,
    "safe_scale_in": _scale_in,
    "headroom": _headroom,
    "survive": _survive,
    "slo": _slo,
    "demand": _demand,
}


# Parts of a scenario, changed in place.


def _with_pool(scenario: Scenario, relaxation: Relaxation, edit: Callable[[Pool], Pool]) -> Scenario:
    name = PoolId(relaxation.key[0])
    return scenario.but(pools=_edited(scenario.pools, name, edit, relaxation))


def _with_service(
    scenario: Scenario,
    relaxation: Relaxation,
    edit: Callable[[Service], Service],
    *,
    name: str | None = None,
) -> Scenario:
    return scenario.but(
        services=_edited(scenario.services, relaxation.key[0] if name is None else name, edit, relaxation)
    )


def _with_variant(
    scenario: Scenario, relaxation: Relaxation, place: tuple[str, str], edit: Callable[[Variant], Variant]
) -> Scenario:
    service, variant = place

    def edited(old: Service) -> Service:
        return old.but(variants=_edited(old.variants, variant, edit, relaxation))

    return _with_service(scenario, relaxation, edited, name=service)


def _with_budget(
    scenario: Scenario, relaxation: Relaxation, field: str, changes: Mapping[str, Any]
) -> Scenario:
    budgets = getattr(scenario.limits, field)
    edited = _edited(budgets, relaxation.key[0], lambda budget: budget.but(**changes), relaxation)
    return scenario.but(limits=scenario.limits.but(**{field: edited}))


def _edited(
    parts: Iterable[_Part], name: str, edit: Callable[[_Part], _Part], relaxation: Relaxation
) -> tuple[_Part, ...]:
    """The parts with one of them changed."""
    before = tuple(parts)
    names = [getattr(part, "id") for part in before]  # noqa: B009 - every part of a scenario that is named
    if name not in names:
        raise _refused(relaxation, f"no {name!r}", ", ".join(names) or "none")
    return tuple(edit(part) if each == name else part for each, part in zip(names, before, strict=True))


def _candidate(problem: Problem, relaxation: Relaxation) -> Candidate:
    found = problem.candidate.get(CandidateId(relaxation.key[0]))
    if found is None:
        raise _refused(relaxation, f"no candidate {relaxation.key[0]!r}", "one of the problem")
    return found
