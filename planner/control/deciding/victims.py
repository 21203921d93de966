"""Which pods go first when replicas are removed: those that nobody needs, then the emptiest."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from models.observation import EngineObservation
from planner.control.analysis import VariantSeen

__all__ = ["victims_of"]


def victims_of(
    variant: VariantSeen, desired: int, *, leaving: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Ready pods that go first, the first first; replicas that are not ready go before any of them.

    Pods on nodes that take no pods any more come first, then those with the fewest requests and the emptiest cache; what
    a pod holds is not known counts as full.

    Args:
        variant: with its engines.
        desired: replicas that it is to have.
        leaving: nodes that pods should leave anyway.
    """
    seen = variant.observed
    count = seen.ready - desired
    if count <= 0:
        return ()
    nodes = dict(zip(seen.pods, seen.nodes, strict=False))
    held = _held(variant)
    order = sorted(seen.pods, key=lambda pod: (nodes.get(pod, "") not in leaving, *held.get(pod, _FULL), pod))
    return tuple(order[:count])


_FULL = (float("inf"), 1.0)


def _held(variant: VariantSeen) -> Mapping[str, tuple[float, float]]:
    """(requests, KV usage) by pod; of a pod with several engines their sum and the fullest."""
    by_pod: dict[str, list[EngineObservation]] = {}
    for engine in variant.engines:
        by_pod.setdefault(engine.pod, []).append(engine)
    found = {}
    for pod, engines in by_pod.items():
        requests = [
            (one.running, one.waiting if one.waiting_now is None else one.waiting_now) for one in engines
        ]
        if any(value is None for pair in requests for value in pair):
            continue
        total = sum(value or 0.0 for pair in requests for value in pair)
        found[pod] = (total, max(one.kv_now if one.kv_now is not None else 1.0 for one in engines))
    return found
