"""What a goal does not change is prepared once: a program that has grown is cut as if it were new."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from planner.optimization.backends.column_generation.blocks import Shape
from planner.optimization.backends.column_generation.engine import ColumnGeneration
from planner.optimization.backends.column_generation.preparation import prepared
from planner.optimization.backends.engine import Ask, Termination
from planner.optimization.backends.memory import Memory
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import cost_goal, power_goal
from planner.optimization.program import Column, IntegerProgram, Key, Row
from tests.builders import a_candidate, a_demand, a_pool, a_problem

SERVICES = ("chat", "code", "search")
PROGRAM = formulate(
    a_problem(
        [a_demand(service, rps=3.0 + 2 * i) for i, service in enumerate(SERVICES)],
        [
            a_candidate(
                service,
                f"tp{pods}",
                gpus_per_pod=pods,
                rated_rps=1.1 * pods,
                cost=1.0 + 1.7 * pods,
                power_w=100.0 + 50 * pods,
            )
            for service in SERVICES
            for pods in (1, 2)
        ],
        [a_pool(nodes=4)],
        allow_unserved=True,
    )
)
CHAT: Key = ("z", "chat")
CODE: Key = ("z", "code")
LARGEST: Key = ("t", "largest")


def holding(columns: tuple[Column, ...], *rows: Row) -> IntegerProgram:
    return PROGRAM.program.plus(columns, rows)


GROWN = {
    "a row over all blocks": holding((), Row(("level", "cost"), cost_goal(PROGRAM.index).terms, upper=10**9)),
    "a row of one block": holding((), Row(("unserved", "chat"), {CHAT: 1}, upper=0)),
    "a column of none": holding(
        (Column(LARGEST, 0, 10_000),), Row(("t", "chat"), {CHAT: 1, LARGEST: -1}, upper=0)
    ),
    "a column that is no decision": holding(
        (Column(LARGEST, 7, 7),), Row(("t",), {CODE: 1, CHAT: 1, LARGEST: -1}, upper=0)
    ),
    "a row that cannot hold": holding((Column(LARGEST, 7, 7),), Row(("t",), {LARGEST: 1}, upper=0)),
    "a row that joins blocks": holding((), Row(("ratio", "two"), {CHAT: 1, CODE: -1}, upper=0)),
    "a column that is a block": holding((Column(("n", "new"), 0, 3),)),
}


def described(shape: Shape) -> tuple[object, ...]:
    blocks = [(block.columns, block.rows) for block in shape.blocks]
    return blocks, shape.master, shape.tying, shape.fixed, shape.impossible, dict(shape.owner)


@pytest.mark.parametrize("program", GROWN.values(), ids=GROWN.keys())
def test_a_program_that_has_grown_is_cut_as_if_it_were_new(program: IntegerProgram) -> None:
    before = prepared(PROGRAM.program)
    after, anew = prepared(program, before), prepared(program)
    assert described(after.shape) == described(anew.shape)
    assert after.ties.lower.tolist() == anew.ties.lower.tolist()
    assert after.ties.upper.tolist() == anew.ties.upper.tolist()
    assert after.ties.use == anew.ties.use
    assert [form and form.base for form in after.forms] == [form and form.base for form in anew.forms]


def test_blocks_without_a_new_row_are_the_same_objects() -> None:
    before = prepared(PROGRAM.program)
    after = prepared(GROWN["a row of one block"], before)
    changed = [old is not new for old, new in zip(before.shape.blocks, after.shape.blocks, strict=True)]
    assert changed == [True, False, False]


def test_another_program_is_prepared_anew() -> None:
    other = IntegerProgram(PROGRAM.program.columns[:-1], ())
    assert prepared(other, prepared(PROGRAM.program)).program is other


def test_levels_with_a_memory_end_where_levels_without_one_do() -> None:
    cost, power = cost_goal(PROGRAM.index), power_goal(PROGRAM.index)
    served = PROGRAM.program.plus(rows=[Row(("unserved", s), {("z", s): 1}, upper=0) for s in SERVICES])
    memory = Memory()
    found = {}
    for kept in (None, memory):
        engine = ColumnGeneration()
        first = engine.minimize(Ask(served, cost, 10.0, 1e-6, memory=kept))
        assert first.values is not None
        held = served.plus(rows=[Row(("level", "cost"), cost.terms, upper=cost.activity(first.values))])
        second = engine.minimize(Ask(held, power, 10.0, 1e-6, memory=kept))
        assert second.values is not None
        found[kept] = cost.activity(first.values), power.activity(second.values)
        assert first.termination is second.termination is Termination.OPTIMAL
    assert found[None] == found[memory]


@dataclass(frozen=True)
class Notes:
    """What some engine keeps: how old it is."""

    descents: int

    def aged(self) -> Notes:
        """One descent older."""
        return Notes(self.descents + 1)


def test_the_next_descent_has_a_memory_of_its_own() -> None:
    memory = Memory()
    memory.keep(Notes(0))
    following = memory.aged()
    assert following.recall(Notes) == Notes(1)
    following.keep(Notes(9))
    assert memory.recall(Notes) == Notes(0)
    assert Memory().recall(Notes) is None
