"""Services and pools that come and go: bare fields in, bare fields out. Nothing here knows of a screen.

What comes is a copy of what is there, or a pool of an accelerator of the catalog. What goes takes along what names it:
replicas that run, lists of places, power caps that speak of no pool any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

__all__ = ["with_copied_pool", "with_copied_service", "with_new_pool", "without_strays"]

Fields = dict[str, Any]

_PLACE_LISTS: Final = ("allow_pools", "deny_pools")


def with_copied_service(fields: Mapping[str, Any], of: str, *, name: str, factor: float = 1.0) -> Fields:
    """The scenario with one more service, like another one at so many times its traffic; nothing of it runs.

    Objects of a cluster belong to the one that was copied, so the copy names none.
    """
    edited = deepcopy(dict(fields))
    service = deepcopy(_named(edited["services"], of))
    service["id"] = name
    for bucket in service["buckets"]:
        bucket["arrival_rps"] = bucket["arrival_rps"] * factor
    for variant in service.get("variants", ()):
        variant.pop("object", None)
    edited["services"] = [*edited["services"], service]
    return edited


def with_copied_pool(fields: Mapping[str, Any], of: str, *, name: str) -> Fields:
    """The scenario with one more pool, like another one and empty; its nodes are named after it."""
    edited = deepcopy(dict(fields))
    pool = deepcopy(_named(edited["pools"], of))
    pool["id"] = name
    nodes = pool.get("nodes", ())
    for number, node in enumerate(nodes):
        node["id"] = f"{name}-{number}" if len(nodes) > 1 else f"{name}-node"
        node.pop("foreign_gpus", None)
    pool.pop("failure_domain", None)
    edited["pools"] = [*edited["pools"], pool]
    return edited


def with_new_pool(
    fields: Mapping[str, Any], *, name: str, accelerator: str, nodes: int, gpus: int, usd_per_h: float | None
) -> Fields:
    """The scenario with one more pool of an accelerator of the catalog.

    Args:
        fields: of the scenario.
        name: of the pool.
        accelerator: its type.
        nodes: how many.
        gpus: of each node.
        usd_per_h: price of one accelerator, $/h; None: the catalog's.
    """
    edited = deepcopy(dict(fields))
    pool: Fields = {"id": name, "accelerator": accelerator}
    if nodes:
        pool["nodes"] = [{"id": f"{name}-node", "gpus": gpus, **({"count": nodes} if nodes > 1 else {})}]
    if usd_per_h is not None:
        pool["offering"] = {"usd_per_h": usd_per_h}
    edited["pools"] = [*edited["pools"], pool]
    return edited


def without_strays(fields: Mapping[str, Any], before: Mapping[str, Any]) -> Fields:
    """The fields without what names services or pools that were there before and are not any more.

    What named nothing before is left, so that it is reported.
    """
    edited = deepcopy(dict(fields))
    services = _gone(before["services"], edited.get("services", ()))
    pools = _gone(before["pools"], edited.get("pools", ()))
    if not services and not pools:
        return edited
    _sweep_running(edited, services, pools)
    for service in edited.get("services", ()):
        _sweep_service(service, services, pools)
    _sweep_power(edited, pools)
    return edited


def _named(parts: Sequence[Fields], name: str) -> Fields:
    return next(part for part in parts if part["id"] == name)


def _gone(before: Sequence[Fields], after: Sequence[Fields]) -> set[str]:
    return {part["id"] for part in before} - {part.get("id") for part in after}


def _sweep_running(edited: Fields, services: Collection[str], pools: Collection[str]) -> None:
    rows = edited.get("fleet", {}).get("running", ())
    kept = [row for row in rows if row["service"] not in services and row["pool"] not in pools]
    if len(kept) == len(rows):
        return
    edited.pop("fleet")
    if kept:
        edited["fleet"] = {"running": kept}


def _sweep_service(service: Fields, services: Collection[str], pools: Collection[str]) -> None:
    if service.get("shares_replicas_of") in services and service.get("variants"):
        service.pop("shares_replicas_of")
    places = service.get("places", {})
    for key in _PLACE_LISTS:
        _sweep_list(places, key, pools)
    for variant in service.get("variants", ()):
        _sweep_list(variant, "pools", pools)


def _sweep_power(edited: Fields, pools: Collection[str]) -> None:
    limits = edited.get("limits", {})
    for cap in limits.get("power", ()):
        _sweep_list(cap, "pools", pools)


def _sweep_list(holder: Fields, key: str, gone: Collection[str]) -> None:
    """Take names out of a list, unless nothing would be left: an empty list would mean all."""
    names = holder.get(key)
    kept = [name for name in names or () if name not in gone]
    if kept:
        holder[key] = kept
