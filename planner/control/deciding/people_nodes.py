"""Nodes that will be away: their capacity leaves the plan, and what runs there is replaced before it goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from models.controller import ControllerSettings
from models.hardware import Pool
from models.observation import Finding, Observation, VariantObservation
from models.people import Maintenance
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.protocols import Decision

__all__ = ["MOVING", "Leaving", "Surge", "leaving_nodes", "moved", "without_leaving"]

MOVING: Final = "MovedFromNode"
_SHOWN: Final = 5
_Node = tuple[str, str]
"""Cluster (empty: the only one) and name."""


class Surge(NamedTuple):
    """A count that was raised: what the service needs, and by how much it was raised."""

    base: int
    extra: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Nodes that go, or are gone, and what is to be said about them.

    Attributes:
        nodes: cluster and name.
        findings: those that still take pods, and names that fit no node.
    """

    nodes: frozenset[_Node] = frozenset()
    findings: tuple[Finding, ...] = ()


def leaving_nodes(pools: Sequence[Pool], settings: ControllerSettings, now_s: float) -> Leaving:
    """Nodes of planned maintenance that is near or under way, and those that are cordoned.

    Args:
        pools: accelerators as they were seen.
        settings: with the maintenance.
        now_s: seconds of the epoch.
    """
    known = {(pool.cluster or "", node.id): node for pool in pools for node in pool.nodes}
    leaving = {key for key, node in known.items() if node.cordoned} if settings.leave_cordoned else set()
    findings: list[Finding] = []
    for each in settings.maintenance:
        if not _is_near(each, now_s):
            continue
        named = {key for key in known if _names(each, key)}
        if not named:
            problem = "planned maintenance names no node that there is"
            findings.append(Finding(subject=", ".join(each.nodes[:_SHOWN])[:300], problem=problem))
        leaving |= named
    open_ones = sorted(name for (_, name) in (key for key in leaving if not known[key].cordoned))
    if open_ones:
        shown = ", ".join(open_ones[:_SHOWN]) + (
            f" and {len(open_ones) - _SHOWN} more" if len(open_ones) > _SHOWN else ""
        )
        findings.append(
            Finding(
                subject=f"nodes {shown}"[:500],
                problem="they leave for maintenance and still take new pods, those that replace the leaving ones too",
                remedy=f"kubectl cordon {' '.join(open_ones[:_SHOWN])}"[:500],
            )
        )
    return Leaving(nodes=frozenset(leaving), findings=tuple(findings))


def without_leaving(observation: Observation, leaving: Leaving) -> Observation:
    """The observation where nothing can start on nodes that leave; what runs there still serves, and counts."""
    if not leaving.nodes:
        return observation
    pools = tuple(_cordoned(pool, leaving.nodes) for pool in observation.pools)
    return observation.model_copy(update={"pools": pools})


def moved(
    decisions: Sequence[Decision],
    leaving: Leaving,
    surged: Mapping[VariantRef, Surge],
    *,
    chooses_victims: bool,
) -> tuple[tuple[Decision, ...], dict[VariantRef, Surge]]:
    """Decisions that replace what runs on leaving nodes, make before break.

    Each variant with replicas there gets as many more, within its maximum and no more than it has without them, until
    enough of them are ready elsewhere; then those on leaving nodes go first. Where nobody chooses victims
    (``chooses_victims`` is false) the surplus stays until the nodes are drained, since others might go in their place.

    Args:
        decisions: one for each variant, as the service needs it.
        leaving: nodes.
        surged: by how much each variant was raised in the cycle before.
        chooses_victims: victims are the first to go.

    Returns:
        Decisions, and by how much each was raised.
    """
    raised: dict[VariantRef, Surge] = {}
    answers = []
    for decision in decisions:
        ref = ref_of(decision.variant)
        answer, extra = _moved(decision, leaving, surged.get(ref), chooses_victims=chooses_victims)
        answers.append(answer)
        if extra:
            raised[ref] = Surge(answer.desired - extra, extra)
    return tuple(answers), raised


def _moved(
    decision: Decision, leaving: Leaving, before: Surge | None, *, chooses_victims: bool
) -> tuple[Decision, int]:
    variant, wanted = decision.variant, decision.variant.wanted
    if wanted is None:
        return decision, 0
    going = _pods_on(variant, leaving.nodes)
    if not going and before is None:
        return decision, 0
    # Whoever follows the gauge may not have got so far: only what came counts.
    came = 0 if before is None else max(0, min(wanted - before.base, before.extra))
    base = _base(wanted, decision.desired, came)
    elsewhere = len(variant.pods) - len(going)
    replaced = elsewhere >= base and chooses_victims
    room = base if variant.max_replicas is None else max(0, variant.max_replicas - base)
    extra = 0 if replaced else min(len(going), base, room)
    desired = base + extra
    if desired == decision.desired and not (going and desired < wanted):
        return decision, extra
    facts = {**decision.facts, "leaving_replicas": len(going), "needed_replicas": base}
    message = (
        f"{len(going)} of {wanted} replicas are on nodes that leave; "
        + ("they are replaced first" if extra else "enough are ready elsewhere")
        if going
        else "nothing is left on nodes that leave"
    )
    victims = tuple(dict.fromkeys((*going, *decision.victims))) if desired < wanted else ()
    return replace(
        decision, desired=desired, reason=MOVING, message=message, victims=victims, facts=facts
    ), extra


def _base(wanted: int, desired: int, surged: int) -> int:
    """Replicas that the service needs, without those that only stand in for leaving ones.

    What the policy sees has them in it: a wish below the count first takes them back, and one above goes on top.
    """
    base = max(0, wanted - surged)
    if desired >= wanted:
        return base + desired - wanted
    return max(0, base - max(0, wanted - desired - surged))


def _pods_on(variant: VariantObservation, nodes: Collection[_Node]) -> tuple[str, ...]:
    cluster = variant.cluster or ""
    pairs = zip(variant.pods, variant.nodes, strict=False)
    return tuple(pod for pod, node in pairs if node and (cluster, node) in nodes)


def _cordoned(pool: Pool, nodes: Collection[_Node]) -> Pool:
    cluster = pool.cluster or ""
    if not any((cluster, node.id) in nodes for node in pool.nodes):
        return pool
    changed = tuple(
        node.model_copy(update={"cordoned": True}) if (cluster, node.id) in nodes else node
        for node in pool.nodes
    )
    return pool.model_copy(update={"nodes": changed})


def _is_near(each: Maintenance, now_s: float) -> bool:
    end = each.end
    return _unix_s(each.begin) - each.ahead_s <= now_s and (end is None or now_s < _unix_s(end))


def _unix_s(moment: datetime) -> float:
    return moment.timestamp()


def _names(each: Maintenance, key: _Node) -> bool:
    cluster, node = key
    in_cluster = each.cluster is None or each.cluster == cluster
    return in_cluster and any(fnmatchcase(node, pattern) for pattern in each.nodes)
