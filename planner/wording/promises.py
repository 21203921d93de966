"""Latency promises, and how far what is asked lies from what was measured, as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from models.workload import Slo
from planner.wording.numbers import number, quantity

__all__ = ["distance_phrase", "promises_phrase", "statistic_phrase"]


def promises_phrase(slo: Slo) -> str:
    """``TTFT ≤ 3 s, ITL ≤ 50 ms on average``."""
    told = [f"{name} ≤ {_duration(value)}" for name, value in _targets(slo)]
    return f"{', '.join(told)} {statistic_phrase(slo.at)}" if told else "no promise"


def statistic_phrase(at: float | str | None) -> str:
    """``on average``, ``at p95``; where a source does not tell: ``statistic not said``."""
    if at is None:
        return "statistic not said"
    return "on average" if at == "mean" else f"at p{float(at):g}"


def distance_phrase(asked: tuple[int, int], measured: tuple[int, int] | None) -> str:
    """How far a request shape is from the nearest measured one: ``1,024 × 512 tokens, within a factor of 1.14``.

    Args:
        asked: input and output length, tokens.
        measured: the same of the nearest measured shape; None: there is none.
    """
    if measured is None:
        return "nothing like it was measured"
    shape = f"{number(measured[0])} × {number(measured[1])} tokens"
    if asked == measured:
        return f"{shape}, this very shape"
    factor = math.exp(max(abs(math.log(a / b)) for a, b in zip(asked, measured, strict=True)))
    return f"{shape}, within a factor of {number(factor, 3)}"


def _duration(value_s: float) -> str:
    return quantity(value_s, "s") if value_s >= 1 or value_s == 0 else quantity(value_s * 1000, "ms")


def _targets(slo: Slo) -> Iterator[tuple[str, float]]:
    for name, value in (("TTFT", slo.ttft_s), ("ITL", slo.itl_s), ("E2E", slo.e2e_s)):
        if value is not None:
            yield name, value
