"""Where replicas run: nodes as boxes, or pools as bars where there are too many nodes to look at."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import streamlit as st

from models.report import Report
from planner.charts.nodes import FREE, OTHERS, Block, blocks_of, nodes_chart, pool_use, pools_chart
from planner.referee import Unplaced, pack
from planner.ui.answers.drawing import show_chart
from planner.wording import quantity

__all__ = ["show_where"]

_MOST_NODES: Final = 60


def show_where(report: Report) -> None:
    """The pools of the plan that is shown."""
    problem, solution = report.problem, report.shown.solution
    nodes = sum(len(pool.nodes) for pool in problem.pools) + sum(solution.nodes_added.values())
    placed = pack(problem, solution.counts, solution.nodes_added) if nodes <= _MOST_NODES else None
    if placed is None or isinstance(placed, Unplaced):
        rows = pool_use(problem, solution)
        says = "GPUs of each pool by the service that holds them."
        show_chart(pools_chart(rows), [asdict(row) for row in rows], name="pools", says=says)
        return
    blocks = blocks_of(problem, placed)
    if not blocks:
        st.caption("The pools of this scenario have no nodes that are named.")
        return
    says = f"Which node holds which replica: {_summed(blocks)}."
    show_chart(nodes_chart(blocks), [asdict(block) for block in blocks], name="nodes", says=says, wide=False)


def _summed(blocks: list[Block]) -> str:
    ours = sum(block.gpus for block in blocks if block.variant)
    free = sum(block.gpus for block in blocks if block.holder == FREE)
    others = sum(block.gpus for block in blocks if block.holder == OTHERS)
    return f"{quantity(ours, 'GPU')} of ours, {quantity(free, 'GPU')} free, {quantity(others, 'GPU')} of other pods"
