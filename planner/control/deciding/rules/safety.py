"""When replicas may go: on whole and fresh readings, with others that have room, and after what replaces them is ready."""

from __future__ import annotations

from collections.abc import Callable

from models.observation import Freshness
from planner.control.deciding.rules.way import Code, Context, ServiceWays, Way

__all__ = ["after_replacement", "safe_scale_in"]


def safe_scale_in(asked: ServiceWays, context: Context) -> ServiceWays:
    """Hold what would shrink while anything about its role is missing, stale or too full.

    No scale-in starts while fewer replicas of the role than ``min_non_saturated`` are known to be below τ (published: 2).
    What was decided and has not arrived yet stands too: whoever follows the gauge does so a while later, and a gauge that
    says what the target asks for now would chase it up and down.
    """
    return asked.but(
        [
            way.to(way.kept(context.decided.get(way.seen.ref)), code, message)
            for role, ways in asked.by_role().items()
            if any(way.shrinks for way in ways)
            for code, message in _against(asked, role, ways, context)
            for way in ways
            if way.shrinks
        ]
    )


def _against(asked: ServiceWays, role: str, ways: list[Way], context: Context) -> list[tuple[Code, str]]:
    """The first thing that stands against a scale-in of a role; empty: nothing does."""
    if not context.complete:
        return [(Code.METRICS, "a source did not answer in full: nothing is scaled in on it")]
    dim = [way for way in ways if way.seen.freshness not in (None, Freshness.FRESH) or way.seen.silent]
    if dim:
        names = ", ".join(way.seen.name for way in dim[:3])
        return [(Code.METRICS, f"metrics of {names} are missing or old: nothing of its role is scaled in")]
    needed = asked.service.seen.rules.min_non_saturated
    signal = asked.service.signals.get(role)
    calm = signal.non_saturated if signal is not None else 0
    if calm < needed:
        return [
            (Code.NOT_SAFE, f"{calm} replicas are below saturation, {needed} are needed before one may go")
        ]
    return []


def after_replacement(asked: ServiceWays, context: Context) -> ServiceWays:
    """Where a role grows and shrinks at once, keep enough of what is ready until what replaces it is ready too."""
    changed: list[Way] = []
    for role, ways in asked.by_role().items():
        awaited = any(way.target > way.seen.observed.ready and not way.shrinks for way in ways)
        if awaited and any(way.shrinks for way in ways):
            changed += _kept(asked, role, ways)
    return asked.but(changed)


def _kept(asked: ServiceWays, role: str, ways: list[Way]) -> list[Way]:
    """Give back replicas, the cheapest first, until the ready ones carry the load in every unit that is known."""
    scales = _scales(asked, role, ways)
    left = [sum(min(way.seen.observed.ready, way.target) * size(way) for way in ways) for size, _ in scales]
    found = []
    for way in sorted(
        (way for way in ways if way.shrinks), key=lambda way: (way.seen.observed.cost, way.seen.ref)
    ):
        target = way.target
        while target < way.wanted and any(
            have < needed or size(way) <= 0 for have, (size, needed) in zip(left, scales, strict=True)
        ):
            if target < way.seen.observed.ready:
                left = [have + size(way) for have, (size, _) in zip(left, scales, strict=True)]
            target += 1
        found.append(way.to(target, Code.REPLACEMENT, "what replaces it is not ready yet"))
    return found


def _scales(asked: ServiceWays, role: str, ways: list[Way]) -> list[tuple[Callable[[Way], float], float]]:
    """Size of a replica and what is needed, in tokens, and in the policy's own unit where it has one."""
    service = asked.service
    step = service.step(service.tokens, role)
    sizes = {name: one.capacity for name, one in service.tokens.variants.items()}
    needed = 0.0 if step is None else (step.demand + step.hidden) / service.seen.roles[role].usable
    scales: list[tuple[Callable[[Way], float], float]] = [(lambda way: sizes.get(way.seen.name, 0.0), needed)]
    if any(way.carries is not None for way in ways):
        scales.append((lambda way: way.carries or 0.0, max(way.asked for way in ways)))
    return scales
