"""Limits as phrases: what binds, what conflicts, and how far which limit would have to move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from models.explanation import BindingRow, Conflict, Relaxation
from models.ids import PoolId
from models.problem import Problem
from models.variant import Role
from planner.wording.numbers import number, number_up, quantity, quantity_up, used_of

__all__ = ["binding_sentence", "conflict_sentence", "family_phrase", "limit_phrase", "relaxation_sentence"]

_FAMILIES: Final = {
    "demand": "the promise to serve all demand",
    "rate": "serving all demand inside its latency promises",
    "headroom": "the headroom that is kept free",
    "gpus": "the GPUs that exist",
    "nodes": "the nodes that may be added",
    "placement": "room on single nodes",
    "incumbents": "replicas that keep their places",
    "quota": "the quotas",
    "power": "the power caps",
    "spend": "the budget",
    "bounds": "the bounds on replicas",
    "safe_scale_in": "replicas that may not be taken away now",
    "survive": "the promise to survive the loss of a failure domain",
    "ratio": "the ratio of prefill to decode replicas",
    "change": "the limits on changes",
    "start": "the count of starts",
}


def _of(key: tuple[str, ...]) -> str:
    return " / ".join(key)


def _placement(key: tuple[str, ...]) -> str:
    *places, size = key if len(key) > 1 else (*key, "")
    pods = f" for pods of {size} GPUs" if size else ""
    return f"room on single nodes of {_of(tuple(places))}{pods}"


def _on_path(key: tuple[str, ...]) -> str:
    """The service of a key (service, path, role); the role only where it does not do everything."""
    service, *rest = key or ("",)
    role = rest[-1] if rest else Role.BOTH
    return service if role == Role.BOTH else f"{service} ({role})"


def _survive(key: tuple[str, ...]) -> str:
    if len(key) > 1:
        return f"the promise that {_on_path(key[:-1])} survives the loss of {key[-1]}"
    return f"the promise that {_of(key)} survives a loss"


def _ratio(key: tuple[str, ...]) -> str:
    service, *side = key or ("",)
    bound = {"min": "least ", "max": "largest "}.get(side[0], "") if side else ""
    return f"the {bound}ratio of prefill to decode replicas of {service}"


_PAIR: Final = 2

_OWED: Final = {"rate", "headroom", "survive"}
"""Families in which capacity must reach what is owed, rather than use stay below a limit."""

_PHRASES: Final[dict[str, Callable[[tuple[str, ...]], str]]] = {
    "demand": lambda key: f"the demand of {_of(key)}",
    "rate": lambda key: f"the rated capacity of {_on_path(key)}",
    "headroom": lambda key: f"the capacity of {_on_path(key)} with headroom",
    "gpus": lambda key: f"the GPUs of pool {_of(key)}",
    "nodes": lambda key: f"the nodes that may be added to pool {_of(key)}",
    "placement": _placement,
    "incumbents": lambda key: f"the places of running {_of(key)}",
    "quota": lambda key: f"quota {_of(key)}",
    "power": lambda key: f"the power cap of {_of(key)}",
    "spend": lambda _: "the budget",
    "bounds": lambda key: f"the bounds on replicas of {_of(key)}",
    "safe_scale_in": lambda key: f"the replicas of {_of(key)} that may not be taken away now",
    "survive": _survive,
    "ratio": _ratio,
    "change": lambda key: f"the step limit of {_of(key)}" if key else "the limit on changes",
}


def family_phrase(family: str) -> str:
    """A whole family of limits, as a phrase."""
    return _FAMILIES.get(family, f"the limits of family {family}")


def limit_phrase(family: str, key: tuple[str, ...]) -> str:
    """One limit, as a phrase: ``the power cap of hall-1``."""
    phrase = _PHRASES.get(family)
    return phrase(key) if phrase is not None else f"{family} {_of(key)}".strip()


def binding_sentence(row: BindingRow) -> str:
    """How far a limit is used, e.g. "The power cap of hall-1: 39.8 kW of 40 kW are used."."""
    phrase = limit_phrase(row.family, row.key)
    if row.family == "placement" and "free_gpus" in row.facts:
        return _no_room(row)
    if row.family in _OWED or (row.family, row.key[-1:]) == ("ratio", ("min",)):
        used, limit = quantity(row.used, row.unit), quantity(row.limit, row.unit)
        return f"{_capital(phrase)}: {used} are owed and {limit} are there."
    return f"{_capital(phrase)}: {used_of(row.used, row.limit, row.unit)} {'is' if row.used == 1 else 'are'} used."


def _no_room(row: BindingRow) -> str:
    pool, size = row.key
    free = quantity(float(row.facts["free_gpus"] or 0), "GPU").replace("GPU", "free GPU")
    return f"Pool {pool} has {free} but no node with {size} free ones: {used_of(row.used, row.limit, row.unit)} are placed."


def conflict_sentence(conflict: Conflict) -> str:
    """Families that cannot hold together."""
    phrases = [family_phrase(family) for family in conflict.families]
    if len(phrases) == 1:
        return f"{_capital(phrases[0])} cannot be kept, whatever else is given up."
    if len(phrases) == _PAIR:
        return f"{_capital(_listed(phrases))} cannot both hold; without either one the other can."
    return f"{_capital(_listed(phrases))} cannot all hold; without any one of them the rest can."


def relaxation_sentence(relaxation: Relaxation, problem: Problem) -> str:
    """How far one limit would have to move, e.g. "Raise the power cap of hall-1 from 40 kW to 46.2 kW."."""
    move = _MOVES.get(relaxation.family, _moved_limit)
    doubt = "" if relaxation.verified else " (an estimate; no plan with it was verified)"
    return f"{_capital(move(relaxation, problem))}{doubt}."


def _more_gpus(relaxation: Relaxation, problem: Problem) -> str:
    pool = problem.pool.get(PoolId(_of(relaxation.key)))
    accelerator = pool.accelerator if pool is not None else "GPUs"
    return f"{number_up(relaxation.needed - relaxation.limit)} more {accelerator} in {_of(relaxation.key)}"


def _less_demand(relaxation: Relaxation, _: Problem) -> str:
    promised = quantity(relaxation.limit, relaxation.unit)
    # A demand is rounded down: what is shown must be servable.
    return f"promise {_floor(relaxation.needed)} instead of {promised} for {_of(relaxation.key)}"


def _instead(verb: str, what: Callable[[tuple[str, ...]], str]) -> Callable[[Relaxation, Problem], str]:
    def sentence(relaxation: Relaxation, _: Problem) -> str:
        needed = quantity_up(relaxation.needed, relaxation.unit)
        return f"{verb} {needed} instead of {number(relaxation.limit)} {what(relaxation.key)}"

    return sentence


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
    "bounds": _instead("allow", lambda key: f"for {_of(key)}"),
    "change": _instead("allow", lambda key: f"for {_of(key)}" if key else "in all"),
}


def _floor(value: float) -> str:
    return number_up(-value).lstrip("-")


def _listed(phrases: list[str]) -> str:
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
