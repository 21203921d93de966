"""The percentage analyzer (V1): mean distance to τ, as published, with missing metrics as missing.

A missing metric is never zero load and never full load for every purpose: where the question is whether to
add a replica it counts as idle, where the question is whether one may go it counts as busy. So a gap in the
metrics moves nothing in either direction by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from models.explanation import Fact, Limited, Reason
from models.fleet import RunningReplica
from models.saturation import SaturationThresholds
from planner.saturation.signal import ReplicaState, SaturationSignal, state_of

__all__ = ["analyze"]

# A spare of exactly γ is on the safe side of both rules; 0.9 - 0.8 must not miss 0.1 by its last bit.
_LAST_BITS: Final = 1e-12


def analyze(
    replicas: Sequence[RunningReplica], thresholds: SaturationThresholds, *, unreported: int = 0
) -> SaturationSignal:
    """The signal of replicas that pool together: one service, one role, every variant.

    Scale up where the mean spare of the non-saturated, KV or queue, is below γ (strictly). Scaling in is safe
    where at least ``min_non_saturated_for_scale_in`` replicas are non-saturated and, with their load spread
    over one replica fewer (factor N/(N-1)), the spare is still γ or more. Load of saturated replicas does not
    enter that forecast (as published).

    Args:
        replicas: ready replicas with what is known of them.
        thresholds: τ, γ and the least number of non-saturated replicas.
        unreported: further ready replicas of which nothing is known.

    Returns:
        The signal; with no replica whose state is known it asks for nothing and permits nothing.
    """
    by_state: dict[ReplicaState, list[RunningReplica]] = {state: [] for state in ReplicaState}
    for replica in replicas:
        by_state[state_of(replica, thresholds)].append(replica)
    calm = by_state[ReplicaState.NON_SATURATED]
    saturated = by_state[ReplicaState.SATURATED]
    missing = len(by_state[ReplicaState.MISSING]) + unreported
    kv = [replica.kv_usage for replica in calm if replica.kv_usage is not None]
    queue = [replica.queue for replica in calm if replica.queue is not None]
    return SaturationSignal(
        saturated=tuple(sorted(saturated, key=lambda replica: replica.canonical_json())),
        non_saturated=len(calm),
        missing=missing,
        spare_kv=_spare(thresholds.tau_kv, kv),
        spare_queue=_spare(thresholds.tau_queue, queue),
        usage_kv=_mean(replica.kv_usage for replica in replicas),
        usage_queue=_mean(replica.queue for replica in replicas),
        up=_up(kv, queue, thresholds, missing=missing, saturated=len(saturated)),
        scale_in=_scale_in(kv, queue, thresholds, missing=missing),
    )


def _up(
    kv: Sequence[float],
    queue: Sequence[float],
    thresholds: SaturationThresholds,
    *,
    missing: int,
    saturated: int,
) -> Limited:
    """Whether one more replica is asked for; a missing replica counts as idle."""
    if not kv and not saturated:
        return Limited(value=0, reason=Reason.STEADY, facts={"missing": missing})
    spare_kv = _spare(thresholds.tau_kv, kv, idle=missing)
    spare_queue = _spare(thresholds.tau_queue, queue, idle=missing)
    facts: dict[str, Fact] = {"spare_kv": spare_kv, "spare_queue": spare_queue, "missing": missing}
    if _below(spare_kv, thresholds.gamma_kv) or _below(spare_queue, thresholds.gamma_queue):
        reason = Reason.SPARE_BELOW_TRIGGER if kv or missing else Reason.SATURATED
        return Limited(value=1, reason=reason, facts=facts)
    return Limited(value=0, reason=Reason.STEADY, facts=facts)


def _scale_in(
    kv: Sequence[float], queue: Sequence[float], thresholds: SaturationThresholds, *, missing: int
) -> Limited:
    """Whether one replica may go; a missing replica counts as full to τ and not as non-saturated."""
    needed = max(1, thresholds.min_non_saturated_for_scale_in)
    if len(kv) < needed:
        facts: dict[str, Fact] = {"non_saturated": len(kv), "needed": needed, "missing": missing}
        return Limited(value=0, reason=Reason.SCALE_IN_NOT_SAFE, facts=facts)
    spare_kv = _spare_with_one_fewer(thresholds.tau_kv, kv, missing)
    spare_queue = _spare_with_one_fewer(thresholds.tau_queue, queue, missing)
    facts = {"spare_kv_after": spare_kv, "spare_queue_after": spare_queue, "missing": missing}
    if _below(spare_kv, thresholds.gamma_kv) or _below(spare_queue, thresholds.gamma_queue):
        return Limited(value=0, reason=Reason.SCALE_IN_NOT_SAFE, facts=facts)
    return Limited(value=1, reason=Reason.STEADY, facts=facts)


def _spare_with_one_fewer(tau: float, usages: Sequence[float], missing: int) -> float | None:
    """Mean distance to τ after one replica left its load to the others; None: load, and nobody left to carry it."""
    load = math.fsum([*usages, tau * missing])
    left = len(usages) + missing - 1
    if left == 0:
        return tau if load == 0 else None
    return tau - load / left


def _spare(tau: float, usages: Sequence[float], *, idle: int = 0) -> float:
    """Mean distance to τ of these usages and of ``idle`` replicas at zero; 0 if there is none."""
    number = len(usages) + idle
    return max(0.0, tau - math.fsum(usages) / number) if number else 0.0


def _mean(usages: Iterable[float | None]) -> float | None:
    known = [usage for usage in usages if usage is not None]
    return math.fsum(known) / len(known) if known else None


def _below(spare: float | None, gamma: float) -> bool:
    return spare is None or spare < gamma - _LAST_BITS
