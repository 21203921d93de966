"""Limits as phrases: what binds, what conflicts, and how far which limit would have to move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from models.explanation import BindingRow, Conflict
from models.variant import Role
from planner.wording.numbers import quantity, used_of
from planner.wording.phrases import capital, some_of

__all__ = [
    "ROWS_SHOWN",
    "binding_sentence",
    "conflict_rows",
    "conflict_sentence",
    "family_phrase",
    "limit_phrase",
]

ROWS_SHOWN: Final = 12
"""Rows of one family in a conflict that are named; more are counted."""

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
    "variants": "the number of variants of a service that may run at once",
    "change": "the limits on changes",
    "start": "the count of starts",
}


def _of(key: tuple[str, ...]) -> str:
    return " / ".join(key)


def _placement(key: tuple[str, ...]) -> str:
    *places, size = key if len(key) > 1 else (*key, "")
    pods = f" for pods of {size} GPU{'' if size == '1' else 's'}" if size else ""
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

_TELLING: Final = {
    "placement": 1,
    "incumbents": 1,
    "change": 1,
    "rate": 3,
    "headroom": 3,
    "survive": 4,
    "variants": 2,
}
"""How many names of a row's key tell people something; the rest tells parts of one limit apart."""

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
    "slo": lambda key: f"the latency promises of {_of(key)}",
    "safe_scale_in": lambda key: f"the replicas of {_of(key)} that may not be taken away now",
    "survive": _survive,
    "ratio": _ratio,
    "variants": lambda key: f"the number of variants of {_on_path(key)} that may run at once",
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
        return f"{capital(phrase)}: {used} are owed and {limit} are there."
    return f"{capital(phrase)}: {used_of(row.used, row.limit, row.unit)} {'is' if row.used == 1 else 'are'} used."


def _no_room(row: BindingRow) -> str:
    pool, size = row.key
    free = quantity(float(row.facts["free_gpus"] or 0), "GPU").replace("GPU", "free GPU")
    return f"Pool {pool} has {free} but no node with {size} free ones: {used_of(row.used, row.limit, row.unit)} are placed."


def conflict_sentence(conflict: Conflict) -> str:
    """Families that cannot hold together."""
    phrases = [family_phrase(family) for family in conflict.families]
    if len(phrases) == 1:
        return f"{capital(phrases[0])} cannot be kept, whatever else is given up."
    if len(phrases) == _PAIR:
        return f"{capital(_listed(phrases))} cannot both hold; without either one the other can."
    return f"{capital(_listed(phrases))} cannot all hold; without any one of them the rest can."


def conflict_rows(conflict: Conflict) -> list[str]:
    """The rows of a conflict: a phrase per family, with the names of its limits; of many the first."""
    families: dict[str, dict[tuple[str, ...], None]] = {}
    for family, *rest in conflict.rows:
        key = _telling(family, tuple(rest))
        families.setdefault(family, {})[key] = None
    return [_of_family(family, list(keys)) for family, keys in families.items()]


def _telling(family: str, key: tuple[str, ...]) -> tuple[str, ...]:
    """What of a row's key tells people something; the count of a candidate's changes is a part of the limit in all."""
    if family == "change" and len(key) > 1:
        return ()
    return key[: _TELLING.get(family, len(key))]


def _of_family(family: str, keys: list[tuple[str, ...]]) -> str:
    if len(keys) == 1:
        return limit_phrase(family, keys[0])
    names = [_on_path(key) if family in _OWED else _of(key) or "in all" for key in keys]
    return f"{family_phrase(family)}: {some_of(names, ROWS_SHOWN)}"


def _listed(phrases: list[str]) -> str:
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"
