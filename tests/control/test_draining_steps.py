"""Draining as a state machine: who goes, when the count may fall, and who comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.control.actuators.draining import (
    DrainRules,
    Mark,
    Overdue,
    Phase,
    Replica,
    Scene,
    Step,
    next_step,
)

NOW_S = 10_000.0
RULES = DrainRules(limit_s=600, settle_s=5)


def idle(name: str, **more: Any) -> Replica:
    return Replica(name=name, **{"load": 0.0, "seen_s": NOW_S} | more)


def busy(name: str, load: float | None = 3.0, **more: Any) -> Replica:
    return Replica(name=name, **{"load": load, "seen_s": NOW_S} | more)


def going(
    name: str, load: float | None, *, since_s: float = 60.0, drained: bool = False, **more: Any
) -> Replica:
    phase = Phase.DRAINED if drained else Phase.DRAINING
    fields = {"mark": Mark(NOW_S - since_s, phase), "out": True, "load": load, "seen_s": NOW_S} | more
    return Replica(name=name, **fields)


def step(
    *replicas: Replica, desired: int, wanted: int | None = None, rules: DrainRules = RULES, **more: Any
) -> Step:
    asked = len(replicas) if wanted is None else wanted
    return next_step(Scene(replicas=replicas, wanted=asked, desired=desired, **more), rules, NOW_S)


class TestWhoGoes:
    def test_the_emptiest_goes_and_the_count_waits_for_it(self) -> None:
        found = step(busy("a", 5), busy("b", 1), busy("c", 9), desired=2)
        assert found.mark == ("b",)
        assert found.count == 3
        assert [each.name for each in found.waiting] == ["b"]

    def test_one_that_does_not_say_is_not_taken_for_an_empty_one(self) -> None:
        assert step(busy("a", None), busy("b", 7), desired=1).mark == ("b",)

    def test_whom_the_decision_names_goes_first(self) -> None:
        assert step(busy("a", 5), busy("b", 1), busy("c", 9), desired=2, victims=("c",)).mark == ("c",)

    def test_one_that_starts_goes_before_all_others_and_needs_no_wait(self) -> None:
        found = step(busy("a"), idle("b"), Replica(name="c", ready=False), desired=2)
        assert (found.mark, found.count) == ((), 2)

    def test_one_that_is_not_ready_and_has_requests_is_waited_for(self) -> None:
        found = step(busy("a"), busy("c", 2, ready=False), desired=1)
        assert (found.mark, found.count) == (("c",), 2)

    def test_replicas_that_do_not_exist_yet_need_nobody_to_go(self) -> None:
        found = step(busy("a"), busy("b"), wanted=4, desired=2)
        assert (found.mark, found.count) == ((), 2)

    def test_marked_ones_stay_the_choice_although_others_are_emptier_by_now(self) -> None:
        found = step(busy("a", 0), going("b", 4), busy("c", 0), desired=2)
        assert (found.mark, found.restore) == ((), ())
        assert [each.name for each in found.waiting] == ["b"]

    def test_nothing_happens_where_nothing_is_to_go(self) -> None:
        assert step(busy("a"), busy("b"), desired=2) == Step(count=2)
        assert step(busy("a"), busy("b"), desired=5) == Step(count=5)


class TestWhenTheCountFalls:
    def test_an_idle_one_is_made_the_first_to_go_and_the_count_falls(self) -> None:
        found = step(busy("a"), going("b", 0), desired=1)
        assert (found.settle, found.count, found.waiting) == (("b",), 1, ())

    @pytest.mark.parametrize(
        "still",
        [
            going("b", 1),
            going("b", None, seen_s=None),
            going("b", None),
            going("b", 0, out=False),
            going("b", 0, since_s=60, seen_s=NOW_S - 58),
            going("b", 0, since_s=2),
        ],
        ids=[
            "busy",
            "no metrics",
            "one rank silent",
            "still routed to",
            "seen before it settled",
            "just begun",
        ],
    )
    def test_it_does_not_fall_before(self, still: Replica) -> None:
        found = step(busy("a"), still, desired=1)
        assert (found.count, found.settle) == (2, ())
        assert [each.name for each in found.waiting] == ["b"]

    def test_it_falls_by_those_that_are_ready_to_go(self) -> None:
        found = step(busy("a"), going("b", 0), going("c", 5), going("d", 0, drained=True), desired=1)
        assert (found.count, found.settle) == (2, ("b",))
        assert [each.name for each in found.waiting] == ["c"]

    def test_drained_stays_drained_without_metrics(self) -> None:
        assert step(busy("a"), going("b", None, drained=True), desired=1).count == 1

    def test_one_that_got_requests_all_the_same_is_waited_for_again(self) -> None:
        assert step(busy("a"), going("b", 2, drained=True), desired=1).count == 2

    def test_among_pods_that_are_not_ready_nobody_knows_who_goes(self) -> None:
        found = step(
            busy("a"), going("b", 0, ready=False), going("c", 4, ready=False), desired=1
        )  # fmt: skip
        assert found.count == 3
        assert step(busy("a"), going("b", 0, ready=False), going("c", 0, ready=False), desired=1).count == 1

    def test_nobody_begins_while_others_that_are_not_ready_are_about_to_go(self) -> None:
        """Its gate would make it one of them, and the count that falls by them might end it with its requests."""
        out = going("a", 0, ready=False)
        found = step(out, busy("b"), busy("c"), desired=1)
        assert (found.settle, found.mark, found.count) == (("a",), (), 2)
        gone = going("a", 0, ready=False, drained=True)
        assert step(gone, busy("b"), busy("c"), desired=1).mark == ()
        # Where low cost says who goes, the order of marks does.
        assert step(going("a", 0), busy("b"), busy("c"), desired=1).mark == ("b",)

    def test_those_that_leave_already_are_not_counted_again(self) -> None:
        found = step(busy("a"), busy("b"), going("c", 0, drained=True), wanted=2, desired=2)
        assert (found.count, found.restore, found.mark) == (2, (), ())
        again = step(busy("a"), busy("b", 1), going("c", 0, drained=True), wanted=2, desired=1)
        assert (again.count, again.mark) == (2, ("b",))

    def test_scale_to_zero_waits_for_all(self) -> None:
        assert step(going("a", 0), going("b", 1), desired=0).count == 1
        assert step(going("a", 0), going("b", 0), desired=0).count == 0


class TestWhoComesBack:
    def test_all_come_back_when_load_returns(self) -> None:
        found = step(busy("a"), going("b", 0), going("c", 4), desired=3)
        assert (sorted(found.restore), found.count) == (["b", "c"], 3)

    def test_the_one_with_most_to_do_comes_back_when_some_of_it_returns(self) -> None:
        found = step(busy("a"), going("b", 0), going("c", 4), desired=2)
        assert (found.restore, found.settle, found.count) == (("c",), ("b",), 2)

    def test_one_that_was_not_chosen_after_all_comes_back(self) -> None:
        """The count fell, and another pod went in its place."""
        assert step(busy("a"), going("b", 0, drained=True), wanted=2, desired=2).restore == ("b",)

    def test_one_whose_record_was_spoiled_comes_back(self) -> None:
        assert step(busy("a"), busy("b", spoiled=True), desired=2).restore == ("b",)

    def test_one_whose_record_was_spoiled_begins_anew_where_it_is_to_go(self) -> None:
        assert step(busy("a", 9), busy("b", spoiled=True), desired=1).mark == ("b",)


class TestWhenTimeIsOver:
    def test_it_goes_with_its_grace_period(self) -> None:
        found = step(busy("a"), going("b", 4, since_s=600), desired=1)
        assert (found.settle, found.cut, found.count) == (("b",), ("b",), 1)

    def test_it_comes_back_and_another_is_tried(self) -> None:
        rules = DrainRules(limit_s=600, overdue=Overdue.GIVE_BACK)
        found = step(busy("a", 9), going("b", 4, since_s=600), busy("c", 8), desired=2, rules=rules)
        assert (found.restore, found.spare, found.count) == (("b",), ("b",), 3)
        spared = busy("b", 4, spared_until_s=NOW_S + 600)
        assert step(busy("a", 9), spared, busy("c", 8), desired=2, rules=rules).mark == ("c",)

    def test_the_count_stays_where_all_are_spared(self) -> None:
        spared = [busy(name, spared_until_s=NOW_S + 1) for name in "ab"]
        found = step(*spared, desired=1)
        assert (found.mark, found.count) == ((), 2)

    def test_a_clock_that_went_back_does_no_harm(self) -> None:
        found = step(busy("a"), going("b", 4, since_s=-500), desired=1)
        assert (found.count, found.waiting[0].since_s) == (2, 0.0)


class TestOrdinals:
    def test_the_highest_go_whoever_is_emptier(self) -> None:
        found = step(idle("s-0", rank=0), idle("s-1", rank=1), busy("s-2", 9, rank=2), desired=1, first=0)
        assert found.mark == ("s-2", "s-1")

    def test_each_waits_for_those_above_it(self) -> None:
        found = step(
            busy("s-0", rank=0), going("s-1", 0, rank=1), going("s-2", 3, rank=2), desired=1, first=0
        )  # fmt: skip
        assert found.count == 3
        found = step(
            busy("s-0", rank=0), going("s-1", 3, rank=1), going("s-2", 0, rank=2), desired=1, first=0
        )  # fmt: skip
        assert found.count == 2

    def test_ordinals_may_start_elsewhere(self) -> None:
        found = step(busy("s-5", rank=5), going("s-6", 0, rank=6), desired=1, first=5)
        assert found.count == 1

    def test_one_that_is_not_there_is_not_waited_for(self) -> None:
        assert step(busy("s-0", rank=0), wanted=2, desired=1, first=0).count == 1

    def test_one_that_leaves_already_is_left_alone(self) -> None:
        found = step(
            busy("s-0", rank=0), busy("s-1", rank=1), going("s-2", 0, drained=True, rank=2),
            wanted=2, desired=2, first=0,
        )  # fmt: skip
        assert (found.restore, found.count) == ((), 2)

    def test_one_below_comes_back(self) -> None:
        found = step(busy("s-0", rank=0), going("s-1", 2, rank=1), desired=2, first=0)
        assert found.restore == ("s-1",)


def replicas() -> st.SearchStrategy[list[Replica]]:
    marks = st.none() | st.builds(Mark, st.floats(0, 2 * NOW_S), st.sampled_from(Phase))
    one = st.builds(
        Replica, name=st.just("x"), ready=st.booleans(), mark=marks, out=st.booleans(), spoiled=st.booleans(),
        load=st.none() | st.sampled_from([0.0, 1.0, 7.0]), seen_s=st.none() | st.floats(0, 2 * NOW_S),
        spared_until_s=st.sampled_from([0.0, 2 * NOW_S]),
    )  # fmt: skip
    return st.lists(one, max_size=7)


@given(replicas(), st.integers(0, 9), st.integers(0, 9), st.booleans(), st.sampled_from(Overdue))
def test_the_rules_that_always_hold(
    found: list[Replica], wanted: int, desired: int, ordered: bool, overdue: Overdue
) -> None:
    named = [
        Replica(
            name=f"p{place}", rank=place if ordered else None, ready=each.ready, mark=each.mark, out=each.out,
            spoiled=each.spoiled, load=each.load, seen_s=each.seen_s, spared_until_s=each.spared_until_s,
        )
        for place, each in enumerate(found)
    ]  # fmt: skip
    rules = DrainRules(limit_s=600, settle_s=5, overdue=overdue)
    scene = Scene(replicas=named, wanted=wanted, desired=desired, first=0 if ordered else None)
    done = next_step(scene, rules, NOW_S)
    assert desired <= done.count <= max(wanted, desired)
    begun = {each.name for each in named if each.mark is not None}
    assert begun.isdisjoint(done.mark)
    assert not set(done.restore) & {*done.mark, *done.settle}
    # Whoever is marked and stays so is to go; never more than the decision takes away.
    kept = (begun | set(done.mark)) - set(done.restore)
    above = len(named) - desired if not ordered else sum((each.rank or 0) >= desired for each in named)
    assert len(kept) <= max(0, above)
    for each in named:
        late = each.mark is not None and each.mark.since_s + rules.limit_s <= NOW_S
        if each.name in done.settle and not (late and overdue is Overdue.GO):
            assert each.load == 0
