"""How far one limit would have to move, in the terms of who set it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from models.explanation import Fact, Relaxation
from models.ids import PoolId
from models.problem import CostUnit, Problem
from planner.wording.limits import limit_phrase
from planner.wording.numbers import number, number_up, quantity, quantity_up
from planner.wording.phrases import capital

__all__ = ["NOTHING_ENOUGH", "latency_promises", "relaxation_sentence", "together_sentences"]

NOTHING_ENOUGH: Final = "No limit was found whose move would do, alone or with others."
"""Said where nothing is suggested."""

_LATENCIES: Final = (("ttft", "TTFT"), ("itl", "ITL"), ("e2e", "a whole request in"))


def relaxation_sentence(relaxation: Relaxation, problem: Problem) -> str:
    """How far one limit would have to move, and the plan that this allows.

    E.g. "Raise the power cap of hall-1 from 40 kW to 46.2 kW: allows a plan at 922.5 $/h."
    """
    if not relaxation.verified:
        allowed = " (an estimate; no plan with it was verified)"
    else:
        allowed = "" if relaxation.cost is None else f": allows a plan at {_cost(relaxation.cost, problem)}"
    return f"{_move(relaxation, problem)}{allowed}."


def together_sentences(relaxations: Sequence[Relaxation], problem: Problem) -> tuple[str, list[str]]:
    """What limits allow that have to move together, and how far each of them.

    E.g. "No single limit is enough; all of these together allow a plan at 25 $/h", and a sentence for each.
    """
    cost = next((each.cost for each in relaxations if each.cost is not None), None)
    if all(each.verified for each in relaxations):
        allowed = "make every promise hold" if cost is None else f"allow a plan at {_cost(cost, problem)}"
    else:
        allowed = "would do, by an estimate: no plan with them was verified"
    heading = f"No single limit is enough; all of these together {allowed}"
    return heading, [f"{_move(each, problem)}." for each in relaxations]


def _move(relaxation: Relaxation, problem: Problem) -> str:
    return capital(_MOVES.get(relaxation.family, _moved_limit)(relaxation, problem))


def latency_promises(facts: dict[str, Fact]) -> str:
    """Latency promises as they would be, beside what they are: ``TTFT 1 s instead of 0.8 s``."""
    said = [
        f"{name} {quantity(_figure(facts, f'{key}_s'), 's')} instead of {quantity(_figure(facts, f'{key}_before_s'), 's')}"
        for key, name in _LATENCIES
        if f"{key}_s" in facts
    ]
    return " and ".join(said)


def _figure(facts: dict[str, Fact], name: str) -> float | None:
    fact = facts.get(name)
    return None if fact is None else float(fact)


def _cost(cost: float, problem: Problem) -> str:
    return quantity(cost, "$/h") if problem.cost_unit is CostUnit.USD_PER_H else f"a cost of {number(cost)}"


def _of(key: tuple[str, ...]) -> str:
    return " / ".join(key)


def _more_gpus(relaxation: Relaxation, problem: Problem) -> str:
    pool = problem.pool.get(PoolId(_of(relaxation.key)))
    accelerator = pool.accelerator if pool is not None else "GPUs"
    return f"{number_up(relaxation.needed - relaxation.limit)} more {accelerator} in {_of(relaxation.key)}"


def _less_demand(relaxation: Relaxation, _: Problem) -> str:
    promised = quantity(relaxation.limit, relaxation.unit)
    # A demand is rounded down: what is shown must be servable.
    return f"promise {_floor(relaxation.needed)} instead of {promised} for {_of(relaxation.key)}"


def _bounds(relaxation: Relaxation, _: Problem) -> str:
    verb = "ask for" if relaxation.needed < relaxation.limit else "allow"
    needed = quantity(relaxation.needed, relaxation.unit)
    return f"{verb} {needed} instead of {number(relaxation.limit)} for {_of(relaxation.key)}"


def _instead(verb: str, what: Callable[[tuple[str, ...]], str]) -> Callable[[Relaxation, Problem], str]:
    def sentence(relaxation: Relaxation, _: Problem) -> str:
        needed = quantity_up(relaxation.needed, relaxation.unit)
        return f"{verb} {needed} instead of {number(relaxation.limit)} {what(relaxation.key)}"

    return sentence


def _headroom(relaxation: Relaxation, _: Problem) -> str:
    service = _of(relaxation.key)
    if not relaxation.needed:
        return f"keep no headroom for {service} instead of {_share(relaxation.limit, relaxation.unit)}"
    needed = _share(relaxation.needed, relaxation.unit)
    return f"keep {needed} instead of {_share(relaxation.limit, relaxation.unit)} as headroom for {service}"


def _survive(relaxation: Relaxation, _: Problem) -> str:
    service = _of(relaxation.key)
    if not relaxation.needed:
        return f"give up the promise that {service} survives the loss of a failure domain"
    kept, promised = _share(relaxation.needed, "share"), _share(relaxation.limit, "share")
    return f"promise that {kept} instead of {promised} of {service} survives the loss of a failure domain"


def _ratio(relaxation: Relaxation, _: Problem) -> str:
    side = {"min": "least ", "max": "largest "}.get(relaxation.key[-1], "")
    moved = f"to {number(relaxation.needed)} from {number(relaxation.limit)}"
    return f"change the {side}ratio of prefill to decode replicas of {relaxation.key[0]} {moved}"


def _scale_in(relaxation: Relaxation, _: Problem) -> str:
    candidate = _of(relaxation.key)
    return (
        f"let {number(relaxation.needed)} instead of {number(relaxation.limit)} replicas of {candidate} stay, "
        "though its saturation does not permit it"
    )


def _incumbents(relaxation: Relaxation, _: Problem) -> str:
    return f"let {quantity(max(1.0, relaxation.needed), 'replica')} that run on known nodes move"


def _slo(relaxation: Relaxation, _: Problem) -> str:
    service, promised = _of(relaxation.key), latency_promises(relaxation.facts)
    return f"promise {service} {promised or f'{number(relaxation.needed)} times its latencies'}"


def _moved_limit(relaxation: Relaxation, _: Problem) -> str:
    raised = relaxation.needed >= relaxation.limit
    limit = quantity(relaxation.limit, relaxation.unit)
    write = quantity_up if raised else quantity
    verb = "raise" if raised else "lower"
    phrase = limit_phrase(relaxation.family, relaxation.key)
    return f"{verb} {phrase} from {limit} to {write(relaxation.needed, relaxation.unit)}"


_MOVES: Final[dict[str, Callable[[Relaxation, Problem], str]]] = {
    "gpus": _more_gpus,
    "demand": _less_demand,
    "nodes": _instead("allow", lambda key: f"to be added to pool {_of(key)}"),
    "bounds": _bounds,
    "change": _instead("allow", lambda key: f"for {_of(key)}" if key else "in all"),
    "headroom": _headroom,
    "survive": _survive,
    "ratio": _ratio,
    "variants": _instead("let", lambda key: f"of {key[0]} run at once"),
    "safe_scale_in": _scale_in,
    "incumbents": _incumbents,
    "slo": _slo,
}


def _share(value: float, unit: str) -> str:
    """A promise is rounded down: what is shown must be keepable."""
    return f"{_floor(value * 100)} %" if unit == "share" else f"{_floor(value)} {unit}"


def _floor(value: float) -> str:
    return number_up(-value).lstrip("-")
