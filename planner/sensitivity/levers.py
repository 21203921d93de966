"""A scenario with one input at a factor of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.hardware import Pool
from models.ids import PoolId
from models.report import Assessment
from models.saturation import SaturationThresholds
from models.scenario import Scenario
from models.sensitivity import Lever, LeverKind
from models.variant import Cost, Variant
from models.workload import Service
from planner.catalog import Catalog
from planner.sizing.names import Names

__all__ = ["Prices", "levers_of", "list_prices", "moved"]

Prices = Mapping[PoolId, float]
"""List price of one accelerator by pool, $/h, where it is known."""

_PROMISES: Final = ("ttft_s", "itl_s", "e2e_s")
_DIGITS: Final = 9
_NOISE: Final = 1e-6


def list_prices(scenario: Scenario, catalog: Catalog) -> Prices:
    """What the pools cost that state no price of their own."""
    known = Names(scenario, catalog).accelerators
    return {
        pool.id: price
        for pool in scenario.pools
        if (price := known[pool.accelerator].usd_per_h) is not None and pool.offering.usd_per_h is None
    }


def levers_of(scenario: Scenario, plan: Assessment | None = None, *, most: int = 0) -> tuple[Lever, ...]:
    """Inputs as a whole, and for the parts that cost most also one by one.

    Args:
        scenario: what the user states.
        plan: of the scenario; tells which services cost most. None: those that come first are taken.
        most: services, and pools, that have levers of their own.
    """
    costs = {each.service: each.cost for each in plan.services} if plan is not None else {}
    services = sorted((s.id for s in scenario.services), key=lambda name: -costs.get(name, 0.0))[:most]
    pools = [pool.id for pool in scenario.pools][:most]
    many_services, many_pools = len(scenario.services) > 1, len(scenario.pools) > 1
    return (
        *(Lever(kind=kind) for kind in LeverKind),
        *(Lever(kind=LeverKind.DEMAND, target=name) for name in services if many_services),
        *(Lever(kind=LeverKind.SLO, target=name) for name in services if many_services),
        *(Lever(kind=LeverKind.PRICE, target=name) for name in pools if many_pools),
    )


def moved(scenario: Scenario, lever: Lever, factor: float, prices: Prices) -> tuple[Scenario, bool] | None:
    """The scenario with an input at a factor of itself, and whether it was clipped somewhere.

    A threshold stays where it means something: τ at most 1, γ below τ and not below 0. The price of a pool is that of
    its accelerators and of its added nodes; what variants state as their own cost moves with all prices alone.

    Args:
        scenario: what the user states.
        lever: what is moved.
        factor: 1 leaves it as it is.
        prices: of pools that state none.

    Returns:
        None where nothing moves: the input is not there, is 0, or stands at its end.
    """
    match lever.kind:
        case LeverKind.DEMAND:
            new, clipped = _services(scenario, lever, lambda service: _demand(service, factor)), False
        case LeverKind.SLO:
            new, clipped = _services(scenario, lever, lambda service: _slo(service, factor)), False
        case LeverKind.PRICE:
            new, clipped = _priced(scenario, lever, factor, prices), False
        case LeverKind.TAU | LeverKind.GAMMA:
            new = _services(scenario, lever, lambda service: _threshold(service, lever.kind, factor))
            clipped = _is_clipped(scenario, new, lever, factor)
    return None if new == scenario else (new, clipped)


def _services(scenario: Scenario, lever: Lever, change: Callable[[Service], Service]) -> Scenario:
    return scenario.but(
        services=tuple(
            change(service) if lever.target in (None, service.id) else service
            for service in scenario.services
        )
    )


def _demand(service: Service, factor: float) -> Service:
    return service.but(
        buckets=tuple(
            bucket.but(arrival_rps=_rounded(bucket.arrival_rps * factor)) for bucket in service.buckets
        )
    )


def _slo(service: Service, factor: float) -> Service:
    promised = {name: value for name in _PROMISES if (value := getattr(service.slo, name)) is not None}
    if not promised:
        return service
    return service.but(
        slo=service.slo.but(**{name: _rounded(value * factor) for name, value in promised.items()})
    )


def _threshold(service: Service, kind: LeverKind, factor: float) -> Service:
    old = service.thresholds
    if kind is LeverKind.TAU:
        wanted = min(1.0, _rounded(old.tau_kv * factor))
        return service if wanted <= old.gamma_kv else service.but(thresholds=old.but(tau_kv=wanted))
    wanted = _rounded(old.gamma_kv * factor)
    return service if wanted >= old.tau_kv else service.but(thresholds=old.but(gamma_kv=wanted))


def _is_clipped(old: Scenario, new: Scenario, lever: Lever, factor: float) -> bool:
    """Whether a threshold is not where the factor would have it."""
    return any(
        lever.target in (None, before.id)
        and abs(_value(after.thresholds, lever.kind) - _value(before.thresholds, lever.kind) * factor)
        > _NOISE
        for before, after in zip(old.services, new.services, strict=True)
    )


def _value(thresholds: SaturationThresholds, kind: LeverKind) -> float:
    return thresholds.tau_kv if kind is LeverKind.TAU else thresholds.gamma_kv


def _priced(scenario: Scenario, lever: Lever, factor: float, prices: Prices) -> Scenario:
    pools = tuple(
        _pool(pool, factor, prices.get(pool.id)) if lever.target in (None, pool.id) else pool
        for pool in scenario.pools
    )
    if lever.target is not None:
        return scenario.but(pools=pools)
    services = tuple(
        service.but(variants=tuple(_variant(variant, factor) for variant in service.variants))
        if any(variant.cost is not None for variant in service.variants)
        else service
        for service in scenario.services
    )
    return scenario.but(pools=pools, services=services)


def _pool(pool: Pool, factor: float, listed: float | None) -> Pool:
    price = pool.offering.usd_per_h if pool.offering.usd_per_h is not None else listed
    offering = pool.offering if price is None else pool.offering.but(usd_per_h=_rounded(price * factor))
    growth = pool.growth
    if growth is not None and growth.usd_per_node_h:
        growth = growth.but(usd_per_node_h=_rounded(growth.usd_per_node_h * factor))
    return pool.but(offering=offering, growth=growth)


def _variant(variant: Variant, factor: float) -> Variant:
    cost = variant.cost
    if cost is None:
        return variant
    if cost.relative is not None:
        return variant.but(cost=Cost(relative=_rounded(cost.relative * factor)))
    return variant.but(cost=Cost(usd_per_h=_rounded((cost.usd_per_h or 0.0) * factor)))


def _rounded(value: float) -> float:
    """To the digits that somebody would write down: 60 × 1.1 is 66."""
    return float(f"{value:.{_DIGITS}g}")
