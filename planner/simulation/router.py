"""Specs of routers as rows of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.simulation import Admission, Routing
from planner.simulation.kernel import svc

if TYPE_CHECKING:
    from models.simulation import RouterSpec
    from planner.simulation.kernel.state import State

__all__ = ["write_router"]

_ROUTINGS: Final = {
    Routing.SCORERS: svc.SCORERS,
    Routing.ROUND_ROBIN: svc.ROUND_ROBIN,
    Routing.RANDOM: svc.RANDOM,
}
_ADMISSIONS: Final = {
    Admission.OFF: svc.ADMIT_OFF,
    Admission.SHED: svc.ADMIT_SHED,
    Admission.REJECT: svc.ADMIT_REJECT,
    Admission.QUEUE: svc.ADMIT_QUEUE,
}


def write_router(st: State, v: int, spec: RouterSpec) -> None:
    """Let the router of service ``v`` go by this spec from now on; its queue and counters stay."""
    row, sums = st.services[v], st.service_sums[v]
    row[svc.ROUTING], row[svc.ADMISSION] = _ROUTINGS[spec.routing], _ADMISSIONS[spec.admission]
    row[svc.SATURATED_QUEUE], row[svc.MAX_IN_FLIGHT] = spec.saturated_queue, spec.max_in_flight
    row[svc.QUEUE_REQUESTS], row[svc.QUEUE_TOKENS] = spec.queue_requests, spec.queue_tokens
    row[svc.HOLD], row[svc.ATTEMPTS] = spec.hold_without_replica, spec.retry.attempts
    weights = spec.weights
    sums[svc.W_QUEUE], sums[svc.W_KV], sums[svc.W_PREFIX] = weights.queue, weights.kv_cache, weights.prefix
    sums[svc.SATURATED_KV], sums[svc.REFRESH_S] = spec.saturated_kv, spec.refresh_s
    sums[svc.QUEUE_TIMEOUT_S], sums[svc.REQUEST_TIMEOUT_S] = spec.queue_timeout_s, spec.request_timeout_s
    sums[svc.BACKOFF_S], sums[svc.FACTOR] = spec.retry.backoff_s, spec.retry.factor
    sums[svc.SEEN_AT] = -1e300
