"""How long a request stays, and what it holds meanwhile (Little's law needs both)."""

from __future__ import annotations

from collections.abc import Iterator

from models.performance import RatingQuestion
from models.variant import Role

__all__ = ["e2e_s", "longest_tokens", "promises", "residence_s", "resident_tokens"]


def e2e_s(*, ttft_s: float, itl_s: float, output_tokens: int) -> float:
    """Whole request, s: the first token, then ``output_tokens - 1`` more."""
    return ttft_s + (output_tokens - 1) * itl_s


def residence_s(role: Role, *, ttft_s: float, itl_s: float, output_tokens: int) -> float:
    """Time that a request holds KV cache on a replica of this role, s."""
    match role:
        case Role.PREFILL:
            return ttft_s
        case Role.DECODE:
            return (output_tokens - 1) * itl_s
        case Role.BOTH:
            return e2e_s(ttft_s=ttft_s, itl_s=itl_s, output_tokens=output_tokens)


def resident_tokens(question: RatingQuestion) -> float:
    """Mean KV tokens that one request holds while it is there.

    Prefill: the input. Otherwise the input and, on average over its life, half of the output.
    """
    if question.variant.role is Role.PREFILL:
        return float(question.input_tokens)
    return question.input_tokens + question.output_tokens / 2


def longest_tokens(question: RatingQuestion) -> int:
    """KV tokens that one request holds at its end: a prefill replica makes one token and hands the request on."""
    return question.input_tokens + (1 if question.variant.role is Role.PREFILL else question.output_tokens)


def promises(question: RatingQuestion, *, ttft_s: float, itl_s: float) -> Iterator[tuple[str, float, float]]:
    """(name, seen, target) of each promise that a replica of the asked role answers for, s.

    A prefill replica answers for the first token and a decode replica for those after it; the whole request is
    judged with both latencies.
    """
    slo, role = question.slo, question.variant.role
    if slo.ttft_s is not None and role is not Role.DECODE:
        yield "ttft_s", ttft_s, slo.ttft_s
    if slo.itl_s is not None and role is not Role.PREFILL:
        yield "itl_s", itl_s, slo.itl_s
    if slo.e2e_s is not None:
        yield "e2e_s", e2e_s(ttft_s=ttft_s, itl_s=itl_s, output_tokens=question.output_tokens), slo.e2e_s
