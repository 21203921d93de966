"""Rows that let every pod find its accelerators on one node.

New pods go to *plain* nodes (classes of equal nodes without incumbents, and added nodes) or to *named*
nodes, which hold incumbents. On a named node the sizes of new pods and of kept ones are summed. On plain
nodes there are two exact forms:

* sizes divide one another: per size h,  Σ_{h' ≥ h} (h'/h)·R[h'] ≤ Σ_nodes ⌊free/h⌋ + ⌊G/h⌋·m;
* otherwise: columns for the maximal patterns of pods that one node of a class can hold.

R[h] is what is left of the new pods of size h after those on named nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from models.problem import NodeState, PoolState
from models.scenario import Incumbents
from planner.optimization.formulation.index import Index, added, kept, moved, replicas
from planner.optimization.formulation.patterns import divide_one_another, maximal_patterns
from planner.optimization.formulation.physical import pods_on
from planner.optimization.program import Column, Key, Row

__all__ = ["incumbents_rows", "placement"]

Terms = dict[Key, int]
Zone = str
"""A fabric domain of a pool, or the whole pool where no replica is bound to one."""


@dataclass
class Layout:
    """Columns and rows that place the pods of one pool."""

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def placement(index: Index, upper: Mapping[Key, int]) -> Layout:
    """All placement columns and rows; ``upper`` bounds the columns n and m."""
    whole = Layout()
    for pool in index.problem.pools:
        if index.bounded(pool) and index.by_pool[pool.id]:
            _place_pool(index, pool, upper, whole)
    return whole


def _place_pool(index: Index, pool: PoolState, upper: Mapping[Key, int], layout: Layout) -> None:
    bound = any(c.fabric_domain is not None for c in index.by_pool[pool.id])
    zones: dict[Zone, list[NodeState]] = defaultdict(list)
    for node in pool.nodes:
        zones[(node.fabric_domain or "") if bound else ""].append(node)
    zones[""] += []  # added nodes are of no domain
    new_pods = _new_pods(index, pool, tuple(zones), upper, layout)
    for zone, nodes in sorted(zones.items()):
        _place_zone(index, pool, zone, nodes, new_pods.get(zone, {}), upper, layout)


def _new_pods(
    index: Index, pool: PoolState, zones: tuple[Zone, ...], upper: Mapping[Key, int], layout: Layout
) -> dict[Zone, dict[int, Terms]]:
    """New pods by zone and size. Pods that may go to any zone are split by columns of their own."""
    free: dict[int, Terms] = defaultdict(dict)
    by_zone: dict[Zone, dict[int, Terms]] = defaultdict(lambda: defaultdict(dict))
    for candidate in index.by_pool[pool.id]:
        target = free if candidate.fabric_domain is None else by_zone[candidate.fabric_domain]
        terms = target[candidate.gpus_per_pod]
        terms[replicas(candidate)] = candidate.pods_per_replica
        if candidate.id in index.tracked:
            for incumbent in index.incumbents_of[candidate.id]:
                terms[kept(incumbent)] = -candidate.pods_per_replica
    if len(zones) == 1:
        by_zone[zones[0]].update(free)
        return by_zone
    for size, terms in sorted(free.items()):
        most = sum(coefficient * upper[key] for key, coefficient in terms.items() if coefficient > 0)
        split = {zone: ("pods", pool.id, zone, str(size)) for zone in zones}
        layout.columns += [Column(key, 0, most) for key in split.values()]
        layout.rows.append(
            Row(("placement", pool.id, str(size)), terms | dict.fromkeys(split.values(), -1), 0, 0)
        )
        for zone, key in split.items():
            by_zone[zone][size][key] = 1
    return by_zone


def _place_zone(  # noqa: PLR0913, PLR0917 - one zone of one pool, as cut out by the caller
    index: Index,
    pool: PoolState,
    zone: Zone,
    nodes: list[NodeState],
    new_pods: Mapping[int, Terms],
    upper: Mapping[Key, int],
    layout: Layout,
) -> None:
    sizes = sorted(new_pods)
    if not sizes:
        return
    key = ("placement", pool.id) if not zone else ("placement", pool.id, zone)
    incumbents = _kept_gpus(index, pool)
    named = [node for node in nodes if node.holds_pods and node.id in incumbents]
    rest = {size: dict(new_pods[size]) for size in sizes}
    for node in named:
        _place_on_named(key, node, incumbents[node.id], sizes, rest, layout)
    if named:
        for size in sizes:
            layout.rows.append(Row((*key, str(size), "rest"), rest[size], lower=0))
    plain = Counter(
        node.free_gpus
        for node in nodes
        if node.accepts_pods and node.holds_pods and node.id not in incumbents
    )
    growth = pool.growth.gpus_per_node if pool.growth is not None and not zone else 0
    if divide_one_another(sizes):
        layout.rows += _floor_rows(key, pool, sizes, rest, plain, growth)
    else:
        _pattern_rows(key, pool, sizes, rest, plain, growth, upper, layout)


def _kept_gpus(index: Index, pool: PoolState) -> dict[str, Terms]:
    """Accelerators that each kept replica holds, by node."""
    found: dict[str, Terms] = defaultdict(dict)
    for candidate in index.by_pool[pool.id]:
        if candidate.id in index.tracked:
            for incumbent in index.incumbents_of[candidate.id]:
                for node, pods in pods_on(incumbent.nodes).items():
                    found[node][kept(incumbent)] = pods * candidate.gpus_per_pod
    return found


def _place_on_named(
    key: Key, node: NodeState, held: Terms, sizes: list[int], rest: dict[int, Terms], layout: Layout
) -> None:
    """Kept and new pods of one node:  Σ h·x[h] + Σ kept ≤ free."""
    terms = dict(held)
    if node.accepts_pods:
        for size in sizes:
            if size <= node.free_gpus:
                column = ("x", *key[1:], node.id, str(size))
                layout.columns.append(Column(column, 0, node.free_gpus // size))
                terms[column] = size
                rest[size][column] = -1
    layout.rows.append(Row((*key, node.id), terms, upper=node.free_gpus))


def _floor_rows(
    key: Key,
    pool: PoolState,
    sizes: list[int],
    rest: Mapping[int, Terms],
    plain: Mapping[int, int],
    growth: int,
) -> Iterator[Row]:
    """Σ_{h' ≥ h} (h'/h)·R[h'] ≤ Σ_nodes ⌊free/h⌋ + ⌊G/h⌋·m  for every size h."""
    for size in sizes:
        terms: Terms = defaultdict(int)
        for larger in sizes:
            if larger >= size:
                for column, coefficient in rest[larger].items():
                    terms[column] += coefficient * (larger // size)
        if growth:
            terms[added(pool)] -= growth // size
        room = sum(count * (free // size) for free, count in plain.items())
        yield Row((*key, str(size)), dict(terms), upper=room)


def _pattern_rows(  # noqa: PLR0913, PLR0917 - the symbols of one family
    key: Key,
    pool: PoolState,
    sizes: list[int],
    rest: Mapping[int, Terms],
    plain: Mapping[int, int],
    growth: int,
    upper: Mapping[Key, int],
    layout: Layout,
) -> None:
    """Patterns w:  Σ_patterns w ≤ nodes of the class,  Σ w·pods[h] ≥ R[h]  for every size h."""
    classes: list[tuple[str, int, int, Key | None]] = []
    classes += [(f"free{free}", free, count, None) for free, count in sorted(plain.items())]
    if growth:
        classes.append(("added", growth, upper[added(pool)], added(pool)))
    holding: dict[int, Terms] = {size: {} for size in sizes}
    for name, free, count, grown in classes:
        used: Terms = {}
        for pattern in maximal_patterns(free, tuple(sizes)):
            column = ("w", *key[1:], name, ".".join(f"{pods}x{size}" for size, pods in pattern))
            layout.columns.append(Column(column, 0, count))
            used[column] = 1
            for size, pods in pattern:
                holding[size][column] = pods
        if used:
            limit = used if grown is None else used | {grown: -1}
            layout.rows.append(Row((*key, name), limit, upper=count if grown is None else 0))
    for size in sizes:
        terms = dict(holding[size])
        for column, coefficient in rest[size].items():
            terms[column] = terms.get(column, 0) - coefficient
        layout.rows.append(Row((*key, str(size)), terms, lower=0))


def incumbents_rows(index: Index, upper: Mapping[Key, int]) -> Layout:
    """A replica that stays keeps its nodes, or the move is counted:  Σ kept (+ moved) ≥ min(n[c], incumbents[c])."""
    layout = Layout()
    movable = index.problem.incumbents_rule is Incumbents.MOVABLE
    for name in sorted(index.tracked):
        candidate = index.problem.candidate[name]
        groups = index.incumbents_of[name]
        total = sum(group.count for group in groups)
        n, most = replicas(candidate), upper[replicas(candidate)]
        stays: Terms = {kept(group): 1 for group in groups}
        layout.columns += [Column(kept(group), 0, group.count) for group in groups]
        layout.rows.append(Row(("incumbents", name, "kept"), stays | {n: -1}, upper=0))
        if movable:
            layout.columns.append(Column(moved(candidate), 0, total))
            stays = stays | {moved(candidate): 1}
        all_stay = ("stay", name)
        layout.columns.append(Column(all_stay, 0, 1))
        layout.rows.append(Row(("incumbents", name, "all"), stays | {all_stay: -total}, lower=0))
        layout.rows.append(Row(("incumbents", name, "some"), stays | {n: -1, all_stay: most}, lower=0))
    return layout
