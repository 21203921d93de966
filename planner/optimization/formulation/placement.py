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
from typing import Final

from models.ids import PoolId
from models.problem import NodeState, PoolState
from models.scenario import Incumbents
from planner.optimization.formulation.index import Index, added, kept, moved, replicas
from planner.optimization.formulation.patterns import divide_one_another, maximal_patterns
from planner.optimization.formulation.physical import pods_on
from planner.optimization.program import Column, Key, Row

__all__ = ["incumbents_rows", "placement"]

Terms = dict[Key, int]


@dataclass
class Layout:
    """Columns and rows that place the pods of one pool."""

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def placement(index: Index, upper: Mapping[Key, int]) -> Layout:
    """All placement columns and rows; ``upper`` bounds the columns n and m."""
    whole = Layout()
    plain = index.once(_plain, _PLAIN_INPUTS)
    for pool in index.problem.pools:
        if pool.id in plain:
            whole.columns += plain[pool.id].columns
            whole.rows += plain[pool.id].rows
        elif index.bounded(pool) and index.by_pool[pool.id]:
            _place_pool(index, pool, upper, whole)
    return whole


_PLAIN_INPUTS: Final = frozenset({"candidates", "incumbents", "mode", "pools"})


def _plain(index: Index) -> dict[PoolId, Layout]:
    """Layouts of pools where no bound of a column matters: pods go to any node, and their sizes divide one another."""
    found = {}
    for pool in index.problem.pools:
        group = index.by_pool[pool.id]
        sizes = sorted({candidate.gpus_per_pod for candidate in group})
        free = all(candidate.fabric_domain is None for candidate in group)
        if index.bounded(pool) and group and free and divide_one_another(tuple(sizes)):
            found[pool.id] = Layout()
            _place_pool(index, pool, defaultdict(int), found[pool.id])
    return found


def _place_pool(index: Index, pool: PoolState, upper: Mapping[Key, int], layout: Layout) -> None:
    bound = any(c.fabric_domain is not None for c in index.by_pool[pool.id])
    nodes: dict[str, list[NodeState]] = defaultdict(list)
    for node in pool.nodes:
        nodes[(node.fabric_domain or "") if bound else ""].append(node)
    nodes[""] += []  # added nodes are of no domain
    new_pods = _new_pods(index, pool, tuple(nodes), upper, layout)
    held = _kept_gpus(index, pool)
    for name in sorted(nodes):
        if pods := new_pods.get(name):
            growth = pool.growth.gpus_per_node if pool.growth is not None and not name else 0
            most_added = upper[added(pool)] if growth else 0
            rest = {size: dict(terms) for size, terms in sorted(pods.items())}
            _Zone(pool, name, nodes[name], held, rest, growth, most_added).place(layout)


def _new_pods(
    index: Index, pool: PoolState, zones: tuple[str, ...], upper: Mapping[Key, int], layout: Layout
) -> dict[str, dict[int, Terms]]:
    """New pods by zone and size. Pods that may go to any zone are split by columns of their own."""
    free: dict[int, Terms] = defaultdict(dict)
    by_zone: dict[str, dict[int, Terms]] = defaultdict(lambda: defaultdict(dict))
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


def _kept_gpus(index: Index, pool: PoolState) -> dict[str, Terms]:
    """Accelerators that each kept replica holds, by node."""
    found: dict[str, Terms] = defaultdict(dict)
    for candidate in index.by_pool[pool.id] if index.tracked else ():
        if candidate.id in index.tracked:
            for incumbent in index.incumbents_of[candidate.id]:
                for node, pods in pods_on(incumbent.nodes).items():
                    found[node][kept(incumbent)] = pods * candidate.gpus_per_pod
    return found


@dataclass(frozen=True)
class _Zone:
    """Nodes of one fabric domain, or of the whole pool where no replica is bound to a domain.

    Attributes:
        pool: the pool.
        name: the domain; empty for the whole pool, or for nodes of no domain.
        nodes: its nodes.
        held: accelerators that each kept replica holds, by node of the pool.
        rest: new pods by size, as terms; those on named nodes are taken out while rows are made.
        growth: accelerators of an added node; 0 where none can be added.
        most_added: nodes that can be added.
    """

    pool: PoolState
    name: str
    nodes: list[NodeState]
    held: Mapping[str, Terms]
    rest: dict[int, Terms]
    growth: int
    most_added: int

    @property
    def key(self) -> Key:
        """Start of the keys of its rows and columns."""
        return (self.pool.id, self.name) if self.name else (self.pool.id,)

    def place(self, layout: Layout) -> None:
        """Add the rows and columns that place the new pods of the zone."""
        named = [node for node in self.nodes if node.holds_pods and node.id in self.held]
        for node in named:
            self._on_named(node, layout)
        if named:
            layout.rows += [
                Row(("placement", *self.key, str(size), "rest"), terms, lower=0)
                for size, terms in self.rest.items()
            ]
        plain = Counter(
            node.free_gpus
            for node in self.nodes
            if node.accepts_pods and node.holds_pods and node.id not in self.held
        )
        if divide_one_another(tuple(self.rest)):
            layout.rows += self._floors(plain)
        else:
            self._patterns(plain, layout)

    def _on_named(self, node: NodeState, layout: Layout) -> None:
        """Kept and new pods of one node:  Σ h·x[h] + Σ kept ≤ free."""
        terms = dict(self.held[node.id])
        for size in self.rest if node.accepts_pods else ():
            if size <= node.free_gpus:
                column = ("x", *self.key, node.id, str(size))
                layout.columns.append(Column(column, 0, node.free_gpus // size))
                terms[column] = size
                self.rest[size][column] = -1
        layout.rows.append(Row(("placement", *self.key, node.id), terms, upper=node.free_gpus))

    def _floors(self, plain: Mapping[int, int]) -> Iterator[Row]:
        """Σ_{h' ≥ h} (h'/h)·R[h'] ≤ Σ_nodes ⌊free/h⌋ + ⌊G/h⌋·m  for every size h."""
        for size in self.rest:
            terms: Terms = defaultdict(int)
            for larger, pods in self.rest.items():
                for column, coefficient in pods.items() if larger >= size else ():
                    terms[column] += coefficient * (larger // size)
            if self.growth:
                terms[added(self.pool)] -= self.growth // size
            room = sum(count * (free // size) for free, count in plain.items())
            yield Row(("placement", *self.key, str(size)), dict(terms), upper=room)

    def _patterns(self, plain: Mapping[int, int], layout: Layout) -> None:
        """Patterns w:  Σ_patterns w ≤ nodes of the class,  Σ w·pods[h] ≥ R[h]  for every size h."""
        holding: dict[int, Terms] = {size: {} for size in self.rest}
        for free, count in sorted(plain.items()):
            used = self._pattern_columns(f"free{free}", free, count, holding, layout)
            layout.rows.append(Row(("placement", *self.key, f"free{free}"), used, upper=count))
        if self.growth:
            used = self._pattern_columns("added", self.growth, self.most_added, holding, layout)
            layout.rows.append(Row(("placement", *self.key, "added"), used | {added(self.pool): -1}, upper=0))
        for size, pods in self.rest.items():
            terms = dict(holding[size])
            for column, coefficient in pods.items():
                terms[column] = terms.get(column, 0) - coefficient
            layout.rows.append(Row(("placement", *self.key, str(size)), terms, lower=0))

    def _pattern_columns(
        self, label: str, free: int, most: int, holding: dict[int, Terms], layout: Layout
    ) -> Terms:
        used: Terms = {}
        for pattern in maximal_patterns(free, tuple(self.rest)):
            column = ("w", *self.key, label, ".".join(f"{pods}x{size}" for size, pods in pattern))
            layout.columns.append(Column(column, 0, most))
            used[column] = 1
            for size, pods in pattern:
                holding[size][column] = pods
        return used


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
