"""Whether anybody uses a service, and whether what waits in its engines will ever be served.

Arrivals, requests in engines and requests in routers are signs of use; completions are not, since a service that was just
woken, or that makes one long answer, has none. What is not known is no proof of anything.

An aborted load can leave requests in engines for ever: they wait, no token is made and nothing arrives. Such queues are not
demand (llm-d autoscaling issue 769).
"""

from __future__ import annotations

from planner.control.analysis.memory import Quiet
from planner.control.analysis.seeing import ServiceSeen

__all__ = ["is_still", "is_unused", "looked_at"]


def looked_at(service: ServiceSeen, before: Quiet, now_s: float) -> Quiet:
    """What is quiet about a service now, and since when.

    A service that got its first replica begins anew: it was just woken, by us or by hand.
    """
    woken = service.replicas > 0 and before.replicas == 0
    still = _since(_shows_no_progress(service), before.still_s, now_s)
    stuck = _lasted(still, now_s, service.rules.stuck_s)
    unused = _since(_shows_no_use(service, stuck=stuck), before.unused_s, now_s)
    return Quiet(now_s if woken and unused is not None else unused, still, service.replicas)


def is_still(quiet: Quiet, now_s: float, *, stuck_s: float) -> bool:
    """Whether what waits in its engines is stuck: nothing moved for so long. Rates look back one more minute."""
    return _lasted(quiet.still_s, now_s, stuck_s)


def is_unused(quiet: Quiet, now_s: float, *, retention_s: float) -> bool:
    """Whether nobody used it for so long, watched all the time."""
    return _lasted(quiet.unused_s, now_s, retention_s)


def _lasted(since_s: float | None, now_s: float, length_s: float) -> bool:
    """Whether something held for so long; None: it does not hold."""
    return since_s is not None and now_s - since_s >= length_s


def _since(holds: bool | None, before_s: float | None, now_s: float) -> float | None:
    """Since when something holds; unknown starts anew, for anything may have happened."""
    if not holds:
        return None
    return now_s if before_s is None else min(before_s, now_s)


def _shows_no_use(service: ServiceSeen, *, stuck: bool) -> bool | None:
    """None: a sign could not be read and the others show nothing."""
    traffic = service.traffic
    flows = traffic.arrival_rps if traffic.arrival_rps is not None else traffic.arrived
    held = 0.0 if stuck else traffic.in_flight
    if service.replicas == 0 and held is None:
        held = 0.0
    signs = (flows, traffic.queued, held)
    if any(sign is not None and sign > 0 for sign in signs):
        return False
    return None if None in signs else True


def _shows_no_progress(service: ServiceSeen) -> bool | None:
    """Something is in engines, nothing arrives, and no engine makes a token."""
    traffic = service.traffic
    engines = [one for variant in service.variants for one in variant.engines]
    if not engines or traffic.queued:
        return False
    came = traffic.arrival_rps
    rates = [one.token_rate for one in engines]
    if came is None:
        each = [one.request_rps for one in engines]
        came = None if None in each else sum(rate for rate in each if rate is not None)
    if came is None or None in rates or any(variant.silent for variant in service.variants):
        return None
    waits = any((one.waiting or 0.0) > 0 or (one.running or 0.0) > 0 for one in engines)
    return waits and came <= 0 and not any(rates)
