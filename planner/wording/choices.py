"""Why this and not that: what more would be worth, what would make a runner-up win, what another answer does."""

from __future__ import annotations

from typing import Final

from models.explanation import Difference, Evidence, Gain, RunnerUp, Worth
from models.problem import CostUnit
from models.solution import Level
from planner.wording.limits import limit_phrase
from planner.wording.numbers import number, percent, quantity
from planner.wording.phrases import some_of
from planner.wording.relaxations import latency_promises
from planner.wording.statuses import level_name

__all__ = [
    "amount_phrase",
    "difference_sentence",
    "gain_phrase",
    "is_worth_nothing",
    "runner_up_sentence",
    "worth_phrase",
    "worthless_sentence",
]

_NAMED: Final = 12


def worth_phrase(worth: Worth) -> str:
    """What there may be more of: ``the GPUs of pool h100``, ``headroom of chat``."""
    match worth.family:
        case "headroom":
            return f"less headroom for {worth.key[0]}"
        case "slo":
            return f"looser latency promises of {worth.key[0]}"
        case _:
            return limit_phrase(worth.family, worth.key)


def amount_phrase(worth: Worth, gain: Gain) -> str:
    """How far it is moved: ``+1 GPU``, ``-5 points`` (of headroom that is a share of the load), ``x 1.1 (TTFT 0.88 s instead of 0.8 s)``."""
    match worth.family:
        case "headroom" if worth.unit == "share":
            return f"-{quantity(gain.amount * 100, 'point')}"
        case "headroom":
            return f"-{quantity(gain.amount, worth.unit)}"
        case "slo":
            promised = latency_promises(worth.facts) if gain.amount == worth.one.amount else ""
            return f"× {number(gain.amount)}{f' ({promised})' if promised else ''}"
        case _:
            return f"+{quantity(gain.amount, worth.unit)}"


def gain_phrase(gain: Gain) -> str:
    """What a move is worth: ``cost 4.8 $/h less``."""
    if gain.level is None:
        return {Evidence.ESTIMATE: "nothing (estimate)", Evidence.FOUND: "nothing found"}.get(
            gain.evidence, "nothing"
        )
    level = level_name(Level(name=gain.level, value=0.0))
    doubt = {Evidence.ESTIMATE: " (estimate)", Evidence.FOUND: " (not proven)"}.get(gain.evidence, "")
    about = "about " if gain.evidence is Evidence.ESTIMATE else ""
    return f"{level}: {about}{quantity(gain.value, gain.unit)} less{doubt}"


def is_worth_nothing(worth: Worth) -> bool:
    """Whether no move that was tried changes anything, proven."""
    return worth.first is None and worth.one.level is None and worth.one.evidence is Evidence.PROVEN


def worthless_sentence(worths: list[Worth]) -> str:
    """What is worth nothing, however much of it."""
    phrases = [worth_phrase(worth) for worth in worths]
    return f"Worth nothing, as far as was tried: {some_of(phrases, _NAMED)}."


def runner_up_sentence(one: RunnerUp, unit: CostUnit) -> str:
    """What would bring a candidate into the plan."""
    if one.price_cut == 0:
        return f"{one.candidate}: a plan with it costs the same; what comes after cost decided."
    said = f"{one.candidate}: the best plan that has it costs {_money(one.extra_cost, unit)} more"
    ways = []
    if one.price_cut is not None:
        ways.append(
            f"at {_money(one.cost - one.price_cut, unit)} a replica instead of {_money(one.cost, unit)}"
        )
    if one.capacity_gain is not None:
        ways.append(f"with {percent(one.capacity_gain)} more capacity")
    wins = (
        f"; it would be in the plan {' or '.join(ways)}"
        if ways
        else "; not even for nothing would it be in the plan"
    )
    doubt = "" if one.evidence is Evidence.PROVEN else " (not proven)"
    return f"{said}{wins}{doubt}."


def difference_sentence(difference: Difference, unit: CostUnit) -> str:
    """What another answer costs and serves beside this one: unserved first, always."""
    unserved = _more_or_less(difference.unserved_rps, quantity(abs(difference.unserved_rps), "req/s"))
    cost = _more_or_less(difference.cost, _money(abs(difference.cost), unit))
    if difference.unserved_rps == 0 and difference.cost == 0:
        return f"{difference.name} serves as much and costs the same."
    served = "serves as much" if difference.unserved_rps == 0 else f"leaves {unserved} unserved"
    return f"{difference.name} {served} and costs {cost or 'the same'}."


def _more_or_less(value: float, size: str) -> str:
    return "" if value == 0 else f"{size} {'more' if value > 0 else 'less'}"


def _money(value: float, unit: CostUnit) -> str:
    return quantity(value, "$/h") if unit is CostUnit.USD_PER_H else number(value)
