"""Short forms of single values, one function each. Each keeps file, line and path of what was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from planner.scenario.scalars import read_plain
from planner.scenario.shape import Scope, Short
from planner.scenario.tree import Entry

__all__ = [
    "attention",
    "cost",
    "current",
    "headroom",
    "nodes",
    "one_or_more",
    "parallelism",
    "percentile",
    "under",
]

_PERCENTILE: Final = re.compile(r"[pP]?(?P<number>[0-9]+(\.[0-9]+)?)(th)?$")
_ALL: Final = 100
_DEGREE: Final = re.compile(r"(?P<name>tp|pp|dp|ep)\s*=?\s*(?P<degree>[0-9]+)$", re.IGNORECASE)
_BETWEEN_DEGREES: Final = re.compile(r"[\s·,+x/_-]+")
_AMOUNT: Final = re.compile(r"\s*\$?\s*[+-]?[0-9][0-9_,.]*([eE][+-]?[0-9]+)?\s*(?P<unit>.*?)\s*$")


def _is_mapping(entry: Entry) -> bool:
    return isinstance(entry.value, Mapping)


def under(key: str) -> Short:
    """A value that is no mapping is the value of ``key``: ``quantization: fp8`` is ``{weights: fp8}``."""

    def short(entry: Entry, scope: Scope) -> Entry:
        del scope
        return entry if _is_mapping(entry) or entry.value is None else entry.but({key: entry})

    return short


def one_or_more(entry: Entry, scope: Scope) -> Entry:
    """A text where a list is due is a list of one."""
    del scope
    return entry.but((entry,)) if isinstance(entry.value, str | int | float) else entry


def percentile(entry: Entry, scope: Scope) -> Entry:
    """``p95``, ``95th`` or ``95`` is the number; ``mean`` stays."""
    if entry.value == "mean":
        return entry
    match = _PERCENTILE.match(entry.text or str(entry.value))
    number = float(match["number"]) if match is not None else 0.0
    if not 0 < number < _ALL:
        scope.complaints.about(
            entry, entry.phrase(), allowed="mean, or a percentile between p0 and p100, such as p95"
        )
        return entry.but("mean")
    return entry.but(number)


def parallelism(entry: Entry, scope: Scope) -> Entry:
    """``tp4``, ``TP8·PP2``, ``dp8-ep8``; a number alone is tp."""
    if isinstance(entry.value, int) and not isinstance(entry.value, bool):
        return entry.but({"tp": entry})
    if not isinstance(entry.value, str):
        return entry
    degrees: dict[str, Entry] = {}
    for part in filter(None, _BETWEEN_DEGREES.split(entry.value.strip())):
        match = _DEGREE.match(part)
        if match is None or match["name"].lower() in degrees:
            scope.complaints.about(
                entry, entry.phrase(), allowed="degrees such as tp4, tp8-pp2 or dp8-ep8, each once"
            )
            return entry.but({})
        degrees[match["name"].lower()] = entry.but(read_plain(match["degree"]), text=match["degree"])
    return entry.but(degrees)


def cost(entry: Entry, scope: Scope) -> Entry:
    """``2.5 $/h`` is ``usd_per_h``; a number without a unit could be either kind."""
    if isinstance(entry.value, str):
        return entry.but({"usd_per_h": entry})
    if isinstance(entry.value, int | float) and not isinstance(entry.value, bool):
        text = entry.text or str(entry.value)
        scope.complaints.about(
            entry,
            f"{text} without a unit",
            allowed=f"{text} $/h, or {{relative: {text}}}",
            suggestion=f"{text} $/h",
        )
        return entry.but(None)
    return entry


def headroom(entry: Entry, scope: Scope) -> Entry:
    """``20 %`` or a number is a share of the load, ``3 req/s`` a burst, ``50k tokens`` KV-cache tokens."""
    del scope
    if _is_mapping(entry) or entry.value is None:
        return entry
    match = _AMOUNT.match(entry.text or str(entry.value))
    unit = match["unit"].lower() if match is not None else ""
    if "/" in unit or unit in {"rps", "qps", "rpm"}:
        return entry.but({"burst_rps": entry})
    return entry.but({"kv_tokens" if "tok" in unit else "relative": entry})


def nodes(entry: Entry, scope: Scope) -> Entry:
    """A number alone is the accelerators of one node."""
    return under("gpus")(entry, scope)


def attention(entry: Entry, scope: Scope) -> Entry:
    """The kind of attention can be seen from its figures."""
    del scope
    if not _is_mapping(entry) or "kind" in entry.fields:
        return entry
    kind = "mla" if "kv_lora_rank" in entry.fields else "gqa"
    return entry.but({"kind": entry.but(kind, text=kind), **entry.fields})


def current(entry: Entry, scope: Scope) -> Entry:
    """``{chat/va-a100@a100: 3}``, or a list, is what runs."""
    if isinstance(entry.value, tuple):
        return entry.but({"running": entry})
    if entry.value is None:
        return entry.but({})
    if not entry.fields or set(entry.fields) == {"running"}:
        return entry
    running = (_running(key, item, scope) for key, item in entry.fields.items())
    return entry.but({"running": entry.but(tuple(one for one in running if one is not None))})


def _running(key: str, item: Entry, scope: Scope) -> Entry | None:
    place, _, pool = key.rpartition("@")
    splits = [(place[:i], place[i + 1 :]) for i, letter in enumerate(place) if letter == "/"]
    if not pool or not splits:
        scope.complaints.about(item, f"key {key!r}", allowed="service/variant@pool")
        return None
    service, variant = next((split for split in splits if split[0] in scope.services), splits[0])
    fields = item.fields if _is_mapping(item) else {"replicas": item}
    names = {"service": service, "variant": variant, "pool": pool}
    return item.but({name: item.but(text, text=text) for name, text in names.items()} | dict(fields))
