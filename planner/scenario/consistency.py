"""What must hold between parts of a scenario that each are right: identities are unique, costs have one unit."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from planner.scenario.references import node_count, node_names
from planner.scenario.tree import ANY, Complaints, Entry, below

__all__ = ["NODES_LIMIT", "check_consistency", "lacks_variants", "out_of_order"]

_IDENTITIES: Final = (
    ("service", ("services", ANY)),
    ("pool", ("pools", ANY)),
    ("accelerator", ("accelerators", ANY)),
    ("LLM", ("llms", ANY)),
    ("quota", ("limits", "quotas", ANY)),
    ("power domain", ("limits", "power", ANY)),
)
NODES_LIMIT: Final = 100_000
_BOUNDS: Final = (("min_replicas", "max_replicas"), ("min", "max"))
_BOUNDED: Final = (
    ("services", ANY),
    ("services", ANY, "variants", ANY),
    ("services", ANY, "ratio"),
)


def check_consistency(document: Entry, complaints: Complaints) -> None:
    """Complain about identities that are not unique, and about costs of both units."""
    for noun, path in _IDENTITIES:
        _check_unique(below(document, *path), noun, complaints)
    for service in below(document, "services", ANY):
        _check_variants(service, complaints)
        _check_unique(below(service, "buckets", ANY), "bucket", complaints)
    _check_bounds(document, complaints)
    _check_nodes(document, complaints)
    _check_running_once(document, complaints)
    _check_cost_units(document, complaints)


def _check_unique(entries: Iterable[Entry], noun: str, complaints: Complaints) -> None:
    seen: dict[str, Entry] = {}
    for entry in entries:
        name = entry.named("id")
        if name is not None and name in seen:
            complaints.about(
                entry, f"{noun} {name!r} again", allowed=f"each once; {_where(seen[name])} has it"
            )
        elif name is not None:
            seen[name] = entry


def _check_variants(service: Entry, complaints: Complaints) -> None:
    _check_unique(below(service, "variants", ANY), "variant", complaints)
    if lacks_variants(service):
        missing = Entry(None, service.file, service.line, f"{service.path}.variants")
        complaints.about(
            service.fields.get("variants", missing),
            "nothing",
            allowed="it is required: a mapping from the id of each variant to what it is",
        )


def lacks_variants(service: Entry) -> bool:
    """Whether a service has neither a variant nor another service whose replicas it uses."""
    if not isinstance(service.value, Mapping):
        return False
    variants, host = service.fields.get("variants"), service.fields.get("shares_replicas_of")
    return (variants is None or variants.value == ()) and (host is None or host.value is None)


def _where(entry: Entry) -> str:
    return f"line {entry.line}" if entry.line is not None else entry.path


def out_of_order(entry: Entry) -> tuple[Entry, Entry] | None:
    """The bounds of a mapping if the lower one is above the upper one."""
    for names in _BOUNDS:
        low, high = (entry.fields.get(name) for name in names)
        if low is not None and high is not None and _number(low) > _number(high):
            return low, high
    return None


def _number(entry: Entry) -> float:
    """The number if there is one; NaN, which compares with nothing, if not."""
    value = entry.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if abs(value) <= sys.float_info.max else math.copysign(math.inf, value)


def _check_bounds(document: Entry, complaints: Complaints) -> None:
    for path in _BOUNDED:
        for entry in below(document, *path):
            bounds = out_of_order(entry)
            if bounds is not None:
                low, high = bounds
                complaints.about(low, low.phrase(), allowed=f"at most {high.phrase()}, as {high.path} says")


def _check_nodes(document: Entry, complaints: Complaints) -> None:
    nodes = list(below(document, "pools", ANY, "nodes", ANY))
    if sum(map(node_count, nodes)) > NODES_LIMIT:
        largest = max(nodes, key=node_count)
        complaints.about(largest, f"more than {NODES_LIMIT} nodes in all", allowed=f"at most {NODES_LIMIT}")
        return
    seen: dict[str, Entry] = {}
    for node in nodes:
        for name in node_names(node):
            if seen.setdefault(name, node) is not node:
                complaints.about(
                    node, f"node {name!r} again", allowed=f"each once; {_where(seen[name])} has it"
                )
                break


def _check_running_once(document: Entry, complaints: Complaints) -> None:
    seen: dict[Hashable, Entry] = {}
    for running in below(document, "fleet", "running", ANY):
        key = tuple(running.named(part) for part in ("service", "variant", "pool"))
        if None not in key and seen.setdefault(key, running) is not running:
            phrase = f"{key[0]}/{key[1]}@{key[2]} again"
            complaints.about(running, phrase, allowed=f"each once; {_where(seen[key])} has it")


def _check_cost_units(document: Entry, complaints: Complaints) -> None:
    """Relative costs and $/h never meet in one sum."""
    relative = next(below(document, "services", ANY, "variants", ANY, "cost", "relative"), None)
    if relative is None:
        return
    allowed = f"relative, as {relative.path} ({_where(relative)}); one unit for all"
    for variant in below(document, "services", ANY, "variants", ANY):
        cost = variant.fields.get("cost")
        if cost is not None and complaints.covers(cost):
            continue
        if cost is None or cost.value is None:
            complaints.about(variant, "no cost, which means $/h from the pool's price", allowed=allowed)
        elif "usd_per_h" in cost.fields:
            complaints.about(cost.fields["usd_per_h"], "a cost in $/h", allowed=allowed)
    dollars = (("limits", "spend_usd_per_h"), ("pools", ANY, "growth", "usd_per_node_h"))
    for path in dollars:
        for entry in below(document, *path):
            if entry.value not in {None, 0}:
                complaints.about(entry, "an amount in $/h", allowed=allowed)
