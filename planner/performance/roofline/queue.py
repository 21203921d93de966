"""The roofline as parameters of the queueing model, which knows percentiles.

The queueing model's iteration takes alpha + beta per computed token + gamma per token that is read. beta
follows from the prefill of a prompt, gamma from the KV cache; alpha takes the rest of an iteration at the load where
the mean latencies would reach the promises, which touches no fewer experts than smaller loads do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from models.explanation import Fact, Reason
from models.performance import Rating, RatingQuestion, Unrated
from models.queueing import QueueingParameters
from models.variant import Role
from planner.performance.queueing.source import QueueingSource
from planner.performance.roofline.formula import Shares, prefill_s, step_s
from planner.performance.roofline.work import Work

__all__ = ["queueing_parameters", "rate_queued"]

_MS: Final = 1000.0


def queueing_parameters(
    work: Work[float], shares: Shares[float], *, in_flight: float, factor: float, max_batch: int
) -> QueueingParameters:
    """Parameters of one replica whose iterations at ``in_flight`` last as long as the roofline says.

    Args:
        work: of the replica.
        shares: how far peaks are reached.
        in_flight: requests in flight at which both agree.
        factor: what modeled times are multiplied by (pessimism).
        max_batch: requests in service at once.
    """
    decode = replace(work, prefilled=0.0)
    gamma_s = shares.kv * work.kv_s / work.held_tokens / work.ranks
    tokens = work.input_tokens
    beta_s = prefill_s(work, shares) / tokens if tokens > 0 else 0.0
    step = step_s(decode, shares, in_flight)
    alpha_s = max(shares.base_s, step - in_flight * (beta_s + gamma_s * work.held_tokens))
    return QueueingParameters(
        alpha_ms=alpha_s * factor * _MS,
        beta_ms_per_token=beta_s * factor * _MS,
        gamma_ms_per_token=gamma_s * factor * _MS,
        max_batch=max_batch,
    )


def rate_queued(
    question: RatingQuestion, parameters: QueueingParameters, *, first_base_s: float
) -> Rating | Unrated:
    """What the queueing model says with these parameters, promises at their percentile included.

    Args:
        question: with promises at a percentile.
        parameters: of the replica.
        first_base_s: part of the first token's time that is no iteration, s; taken off the promises first.
    """
    slo, variant = question.slo, question.variant
    base = 0.0 if variant.role is Role.DECODE else first_base_s
    targets = {"ttft_s": slo.ttft_s, "e2e_s": slo.e2e_s}
    left = {name: target - base for name, target in targets.items() if target is not None}
    for name, rest in left.items():
        if rest <= 0:
            facts: dict[str, Fact] = {f"best_{name}": base, f"target_{name}": targets[name]}
            return Unrated(reason=Reason.SLO_NOT_MET, facts=facts)
    asked = question.but(slo=slo.but(**left), variant=variant.but(queueing=parameters))
    answer = QueueingSource().rate(asked)
    if isinstance(answer, Unrated) or answer.ttft_s is None:
        return answer
    return answer.but(ttft_s=answer.ttft_s + base)
