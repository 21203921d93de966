"""The quick controls: one thing of a scenario changed, with the name that such a change goes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import ValidationError

from models.hardware import Node, Pool, PowerDomain
from models.ids import DomainId, NodeId
from models.scenario import Scenario
from models.sensitivity import Lever, LeverKind
from models.workload import Service
from planner.catalog import Catalog
from planner.errors import ConfigurationError, Finding
from planner.scenario import check_scenario
from planner.sensitivity.levers import list_prices, moved
from planner.wording import number, quantity

__all__ = ["EVERYTHING", "WHOLE_FLEET", "Change", "Control", "changed", "named", "nodes_of", "targets_of"]

EVERYTHING: Final = "all of them"
WHOLE_FLEET: Final = "fleet"
"""Name of a power domain that caps every pool."""


class Control(StrEnum):
    """What can be changed by one control."""

    DEMAND = "Demand"
    PRICE = "Prices"
    SLO = "Latency promises"
    NODES = "Nodes of a pool"
    TAU = "τ of the KV cache"
    GAMMA = "γ of the KV cache"
    POWER = "Power cap"
    FIELD = "Any field"


_FACTORS: Final[Mapping[Control, LeverKind]] = {
    Control.DEMAND: LeverKind.DEMAND,
    Control.PRICE: LeverKind.PRICE,
    Control.SLO: LeverKind.SLO,
}
_WORDS: Final = {
    Control.DEMAND: "demand",
    Control.PRICE: "prices",
    Control.SLO: "promises",
    Control.TAU: "τ",
    Control.GAMMA: "γ",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        control: what is changed.
        target: service, pool or power domain; :data:`EVERYTHING` where all are meant.
        amount: a factor (demand, prices, promises), a number of nodes, a share (τ, γ) or W.
        text: ``PATH=VALUE``, one a line, of any field.
    """

    control: Control
    target: str = EVERYTHING
    amount: float = 1.0
    text: str = ""


def targets_of(scenario: Scenario, control: Control) -> tuple[str, ...]:
    """What a control can be applied to."""
    services = [service.id for service in scenario.services]
    pools = [pool.id for pool in scenario.pools]
    match control:
        case Control.PRICE:
            return (EVERYTHING, *pools)
        case Control.NODES:
            return tuple(pools)
        case Control.POWER:
            return tuple(domain.id for domain in scenario.limits.power) or (WHOLE_FLEET,)
        case Control.FIELD:
            return ()
        case _:
            return (EVERYTHING, *services)


def named(change: Change) -> str:
    """What a change goes by: ``chat demand × 1.5``, ``h100 12 nodes``."""
    of = "" if change.target == EVERYTHING else f"{change.target} "
    match change.control:
        case Control.DEMAND | Control.PRICE | Control.SLO:
            said = f"{of}{_WORDS[change.control]} × {number(change.amount)}"
        case Control.TAU | Control.GAMMA:
            said = f"{of}{_WORDS[change.control]} {number(change.amount)}"
        case Control.NODES:
            said = f"{of}{quantity(change.amount, 'nodes')}"
        case Control.POWER:
            said = f"{of}cap {quantity(change.amount, 'W')}"
        case Control.FIELD:
            said = ", ".join(_lines(change.text))
    return said[:60].strip() or "changed"


def changed(scenario: Scenario, change: Change, catalog: Catalog) -> Scenario:
    """The scenario with the change, held to all that a scenario file is held to.

    Raises:
        ConfigurationError: the change makes no sense, or changes nothing; says all that is wrong.
    """
    try:
        new = _checked(_moved(scenario, change, catalog), change, catalog)
    except ValidationError as fault:
        said = fault.errors()[0]["msg"].removeprefix("Value error, ")
        raise _refused(change, number(change.amount), said) from fault
    except ConfigurationError:
        if change.control is not Control.NODES:
            raise
        # Replicas run on nodes that go: then the nodes are lost, and what ran on them with them.
        new = _checked(_pools(scenario, change, lose=True), change, catalog)
    if new.profiles != scenario.profiles:
        raise _refused(change, "other profile tables", "the tables that the scenario came with")
    if new == scenario:
        raise _refused(change, "a change that changes nothing", "another value, or another field")
    return new


def nodes_of(pool: Pool) -> int:
    """Nodes of a pool that are ready, those that are alike counted one by one."""
    return sum(node.count for node in pool.nodes if node.ready)


def _moved(scenario: Scenario, change: Change, catalog: Catalog) -> Scenario:
    target = None if change.target == EVERYTHING else change.target
    match change.control:
        case Control.DEMAND | Control.PRICE | Control.SLO:
            if change.amount <= 0 and change.control is not Control.DEMAND:
                raise _refused(change, number(change.amount), "a factor above 0")
            lever = Lever(kind=_FACTORS[change.control], target=target)
            new = moved(scenario, lever, change.amount, list_prices(scenario, catalog))
            return scenario if new is None else new[0]
        case Control.TAU | Control.GAMMA:
            field = "tau_kv" if change.control is Control.TAU else "gamma_kv"
            return _services(
                scenario,
                target,
                lambda service: service.but(thresholds=service.thresholds.but(**{field: change.amount})),
            )
        case Control.NODES:
            return _pools(scenario, change, lose=False)
        case Control.POWER:
            return _capped(scenario, change.target, change.amount)
        case Control.FIELD:
            return scenario


def _services(scenario: Scenario, target: str | None, edit: Callable[[Service], Service]) -> Scenario:
    services = tuple(
        edit(service) if target in (None, service.id) else service for service in scenario.services
    )
    return scenario.but(services=services)


def _checked(new: Scenario, change: Change, catalog: Catalog) -> Scenario:
    overrides = _lines(change.text) if change.control is Control.FIELD else []
    fields = new.model_dump(mode="json", exclude_defaults=True)
    return check_scenario(fields, overrides=overrides, catalog=catalog)


def _pools(scenario: Scenario, change: Change, *, lose: bool) -> Scenario:
    wanted = round(change.amount)
    if wanted < 0:
        raise _refused(change, f"{wanted} nodes", "0 or more")
    return scenario.but(
        pools=tuple(
            _with_nodes(pool, wanted, lose=lose) if pool.id == change.target else pool
            for pool in scenario.pools
        )
    )


def _with_nodes(pool: Pool, wanted: int, *, lose: bool) -> Pool:
    """So many nodes that are ready: more of the last kind, empty, or fewer from the end, gone or lost."""
    more = wanted - nodes_of(pool)
    if more > 0:
        return pool.but(nodes=_grown(pool, more))
    kept: list[Node] = []
    lost: list[Node] = []
    for node in pool.nodes:
        if not node.ready:
            lost.append(node)
            continue
        count = min(node.count, wanted - sum(each.count for each in kept))
        if count > 0:
            kept.append(node if count == node.count else node.but(count=count))
        if lose and count < node.count:
            name = node.id if count == 0 else _free_id(pool, f"{node.id}-lost")
            lost.append(node.but(id=name, count=node.count - max(0, count), ready=False))
    return pool.but(nodes=(*kept, *lost))


def _grown(pool: Pool, more: int) -> tuple[Node, ...]:
    if not pool.nodes:
        gpus = pool.growth.gpus_per_node if pool.growth is not None else 8
        return (Node(id=NodeId(f"{pool.id}-new"), gpus=gpus, count=more),)
    *others, last = pool.nodes
    if last.count > 1 and last == last.but(foreign_gpus=0, cordoned=False, ready=True, tainted=False):
        return (*others, last.but(count=last.count + more))
    return (
        *pool.nodes,
        last.but(
            id=_free_id(pool, f"{last.id}-new"),
            count=more,
            foreign_gpus=0,
            cordoned=False,
            ready=True,
            tainted=False,
        ),
    )


def _free_id(pool: Pool, wanted: str) -> str:
    taken = {node.id for node in pool.nodes}
    while wanted in taken:
        wanted = f"{wanted}-more"
    return wanted


def _capped(scenario: Scenario, name: str, cap_w: float) -> Scenario:
    domains = scenario.limits.power or (
        PowerDomain(id=DomainId(WHOLE_FLEET), cap_w=0.0, pools=tuple(pool.id for pool in scenario.pools)),
    )
    power = tuple(domain.but(cap_w=cap_w) if domain.id == name else domain for domain in domains)
    return scenario.but(limits=scenario.limits.but(power=power))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _refused(change: Change, found: str, allowed: str) -> ConfigurationError:
    return ConfigurationError.from_findings([Finding("", None, change.control.value, found, allowed)])
