"""The picture of nodes: every accelerator once, pods whole, and what is not ours said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from models.report import Report
from planner import plan
from planner.charts.nodes import FREE, OTHERS, UNUSABLE, blocks_of, pool_use
from planner.referee import Unplaced, pack

SHIPPED = sorted(Path("data/scenarios").glob("*.yaml"))


@pytest.fixture(scope="module", params=SHIPPED, ids=lambda path: path.stem)
def report(request: pytest.FixtureRequest) -> Report:
    return plan(request.param)


def test_every_accelerator_of_a_node_is_drawn_once(report: Report) -> None:
    solution = report.shown.solution
    placements = pack(report.problem, solution.counts, solution.nodes_added)
    assert not isinstance(placements, Unplaced)
    blocks = blocks_of(report.problem, placements)
    drawn: Counter[tuple[str, str, int]] = Counter()
    for block in blocks:
        for slot in range(block.start, block.start + block.gpus):
            drawn[block.pool, block.node, slot] += 1
    assert set(drawn.values()) <= {1}
    for pool in report.problem.pools:
        for node in pool.nodes:
            assert sum(1 for key in drawn if key[:2] == (pool.id, node.id)) == node.gpus


def test_pods_drawn_are_pods_placed(report: Report) -> None:
    solution = report.shown.solution
    placements = pack(report.problem, solution.counts, solution.nodes_added)
    assert not isinstance(placements, Unplaced)
    blocks = blocks_of(report.problem, placements)
    assert sum(1 for block in blocks if block.variant) == sum(placement.pods for placement in placements)


def test_what_pools_hold_is_what_the_plan_holds(report: Report) -> None:
    solution = report.shown.solution
    rows = pool_use(report.problem, solution)
    for candidate_pool in report.problem.pools:
        held = sum(
            c.gpus * solution.count(c.id) for c in report.problem.candidates if c.pool == candidate_pool.id
        )
        shown = sum(
            row.gpus for row in rows if row.pool == candidate_pool.id and row.holder not in (FREE, OTHERS)
        )
        assert shown == held


def test_a_cordoned_node_and_pods_of_others_are_told_apart() -> None:
    report = plan(Path("data/scenarios/04-fragmentation.yaml"))
    solution = report.shown.solution
    placements = pack(report.problem, solution.counts, solution.nodes_added)
    assert not isinstance(placements, Unplaced)
    holders = Counter(block.holder for block in blocks_of(report.problem, placements))
    assert holders[OTHERS] == sum(n.gpus - n.free_gpus for p in report.problem.pools for n in p.nodes)
    assert holders[UNUSABLE] > 0
    assert holders[FREE] > 0


def test_charts_of_a_large_fleet_name_the_largest_and_sum_up_the_rest() -> None:
    pytest.importorskip("altair", reason="the extra 'plots' is not installed")
    from planner.charts.nodes import PoolUse, pools_chart

    rows = [PoolUse("p", f"s{i}", 1 + i) for i in range(40)]
    (bars,) = pools_chart(rows, most=5).to_dict()["datasets"].values()
    holders = {bar["holder"]: bar["gpus"] for bar in bars}
    assert set(holders) == {"s39", "s38", "s37", "s36", "s35", "35 other services"}
    assert sum(holders.values()) == sum(row.gpus for row in rows)
