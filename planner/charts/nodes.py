"""Which node holds which replica: one box per pod, or one bar per pool where there are too many nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from models.ids import CandidateId, PoolId
from models.problem import PoolState, Problem
from models.solution import Placement, Solution
from planner.charts.style import ink_on, styled, values, wheel

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "FREE",
    "OTHERS",
    "UNUSABLE",
    "Block",
    "PoolUse",
    "blocks_of",
    "nodes_chart",
    "pool_use",
    "pools_chart",
]

FREE: Final = "free"
OTHERS: Final = "other pods"
UNUSABLE: Final = "takes no pods"
_NOT_OURS: Final = {FREE: "#E8E8E8", OTHERS: "#9A9A9A", UNUSABLE: "#C9B7B7"}
_SUMMED: Final = "#5C6B73"
_ROW: Final = 20
_GPU: Final = 30
_LETTERS: Final = 5
"""Letters that the box of one accelerator has room for."""
_HOLDER: Final = 90
"""A narrow screen has room for three names of holders beside each other, px."""


@dataclass(frozen=True, slots=True)
class Block:
    """Neighboring accelerators of one node: a pod, or one accelerator that no pod of ours holds.

    Attributes:
        pool: pool it belongs to.
        node: node it is in.
        start: number of its first accelerator on the node, from 0.
        gpus: how many.
        holder: service that holds it, or why nobody of ours does.
        variant: variant that holds it; empty where nobody does.
        kept: whether the pod was there before.
    """

    pool: str
    node: str
    start: int
    gpus: int
    holder: str
    variant: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class PoolUse:
    """Accelerators of one pool by holder."""

    pool: str
    holder: str
    gpus: int


def blocks_of(problem: Problem, placements: Sequence[Placement]) -> list[Block]:
    """All accelerators of the nodes that are there or that placements add, in the order of pools and nodes."""
    pods: dict[str, list[Placement]] = defaultdict(list)
    for placement in placements:
        pods[placement.node].append(placement)
    blocks: list[Block] = []
    for pool in problem.pools:
        known = [node.id for node in pool.nodes]
        used = {p.node for p in placements if problem.candidate[p.candidate].pool == pool.id}
        for node in (*known, *sorted(used - set(known))):
            blocks += _node_blocks(problem, pool, node, pods.get(node, []))
    return blocks


def _node_blocks(problem: Problem, pool: PoolState, node: str, pods: list[Placement]) -> Iterator[Block]:
    state = next((each for each in pool.nodes if each.id == node), None)
    size = state.gpus if state is not None else pool.growth.gpus_per_node if pool.growth is not None else 0
    ours = [(p.candidate, p.pods - p.kept, False) for p in pods] + [(p.candidate, p.kept, True) for p in pods]
    start = 0
    for candidate_id, count, kept in sorted(ours):
        candidate = problem.candidate[candidate_id]
        for _ in range(count):
            gpus = candidate.gpus_per_pod
            yield Block(pool.id, node, start, gpus, candidate.service, candidate.variant, kept)
            start += gpus
    foreign = 0 if state is None else state.gpus - state.free_gpus
    open_to_us = state is None or (state.accepts_pods and state.holds_pods)
    for rest in range(start, size):
        holder = OTHERS if rest >= size - foreign else FREE if open_to_us else UNUSABLE
        yield Block(pool.id, node, rest, 1, holder)


def pool_use(problem: Problem, solution: Solution) -> list[PoolUse]:
    """Accelerators by pool and holder, without looking at nodes."""
    held: dict[PoolId, Counter[str]] = defaultdict(Counter)
    for candidate in problem.candidates:
        count = solution.counts.get(CandidateId(candidate.id), 0)
        if count:
            held[candidate.pool][candidate.service] += candidate.gpus * count
    rows: list[PoolUse] = []
    for pool in problem.pools:
        added = solution.nodes_added.get(pool.id, 0)
        growth = 0 if pool.growth is None else pool.growth.gpus_per_node * added
        usable = growth + sum(node.free_gpus for node in pool.nodes)
        others = sum(node.gpus - node.free_gpus for node in pool.nodes)
        rows += [PoolUse(pool.id, service, gpus) for service, gpus in held[pool.id].most_common()]
        free = usable - sum(held[pool.id].values())
        rows += [PoolUse(pool.id, FREE, free)] if free > 0 else []
        rows += [PoolUse(pool.id, OTHERS, others)] if others else []
    return rows


def nodes_chart(blocks: Sequence[Block]) -> Any:  # noqa: ANN401 - an Altair chart
    """One row per node, one box per pod with its name, pools below one another."""
    import altair as alt

    services = sorted({block.holder for block in blocks} - _NOT_OURS.keys())
    colors = {**dict(zip(services, wheel(len(services)), strict=True)), **_NOT_OURS}
    rows = [
        {
            **asdict(block),
            "end": block.start + block.gpus,
            "ink": ink_on(colors[block.holder]),
            "name": _name(block),
        }
        for block in blocks
    ]
    widest = max((row["end"] for row in rows), default=1)
    base = alt.Chart(height=alt.Step(_ROW), width=widest * _GPU).encode(
        x=alt.X("start:Q", title=None, axis=None, scale=alt.Scale(domain=[0, widest], nice=False)),
        y=alt.Y("node:N", title=None, sort=None, axis=alt.Axis(grid=False, domain=False, ticks=False)),
        tooltip=[
            "pool:N",
            "node:N",
            alt.Tooltip("holder:N", title="held by"),
            "variant:N",
            alt.Tooltip("gpus:Q", title="GPUs"),
            alt.Tooltip("kept:N", title="was there before"),
        ],
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=1.5, cornerRadius=2).encode(
        x2="end:Q",
        color=alt.Color(
            "holder:N",
            title="held by",
            scale=_colors(services),
            legend=alt.Legend(orient="bottom", columns=3, labelLimit=_HOLDER, symbolStrokeWidth=0),
        ),
    )
    names = [
        base.transform_filter(alt.datum.ink == ink)
        .mark_text(align="left", dx=4, fontSize=10, color=ink)
        .encode(text="name:N")
        for ink in sorted({row["ink"] for row in rows})
    ]
    header = alt.Header(labelAngle=0, labelAlign="left")
    chart = (
        alt.layer(boxes, *names, data=values(rows))
        .facet(row=alt.Row("pool:N", title=None, sort=None, header=header))
        .resolve_scale(y="independent")
    )
    return styled(chart)


def _name(block: Block) -> str:
    """The name of the holder as far as its pod has room for it."""
    if not block.variant:
        return ""
    room = block.gpus * _LETTERS
    return block.holder if len(block.holder) <= room else f"{block.holder[: room - 1]}…"


def pools_chart(rows: Sequence[PoolUse], *, most: int = 12) -> Any:  # noqa: ANN401 - an Altair chart
    """One bar per pool, filled by holder; the largest holders by name and the rest together.

    Args:
        rows: accelerators by pool and holder.
        most: services that are named.
    """
    import altair as alt

    sizes: Counter[str] = Counter()
    for row in rows:
        if row.holder not in _NOT_OURS:
            sizes[row.holder] += row.gpus
    named = [service for service, _ in sizes.most_common(most)]
    rest = f"{len(sizes) - len(named)} other services"
    shown: Counter[tuple[str, str]] = Counter()
    for row in rows:
        known = row.holder in _NOT_OURS or row.holder in named
        shown[row.pool, row.holder if known else rest] += row.gpus
    holders = [*named, *([rest] if len(sizes) > len(named) else [])]
    order = {holder: place for place, holder in enumerate((*holders, *_NOT_OURS))}
    bars = [
        {"pool": pool, "holder": holder, "gpus": gpus, "order": order[holder]}
        for (pool, holder), gpus in shown.items()
    ]
    chart = (
        alt.Chart(values(bars), height=alt.Step(26))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("gpus:Q", title="GPUs"),
            y=alt.Y("pool:N", title=None, sort=None),
            color=alt.Color(
                "holder:N",
                title="held by",
                scale=_colors(named, [rest] if len(sizes) > len(named) else []),
                sort=list(order),
                legend=alt.Legend(orient="bottom", columns=4),
            ),
            order=alt.Order("order:Q"),
            tooltip=["pool:N", "holder:N", "gpus:Q"],
        )
    )
    return styled(chart)


def _colors(services: Sequence[str], summed: Sequence[str] = ()) -> alt.Scale:
    """Colors of services, of the other ones together, and of what is not ours."""
    import altair as alt

    return alt.Scale(
        domain=[*services, *summed, *_NOT_OURS],
        range=[*wheel(len(services)), *[_SUMMED] * len(summed), *_NOT_OURS.values()],
    )
