"""The page Plan: what a visitor sees and does, with real solves in a worker process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from models.report import Report
from models.solution import Status
from planner.ui import session
from planner.ui.tasks.plan import plan_task, run
from planner.ui.workspace import How
from tests.app_pages import cut, over, press


@pytest.fixture
def visit(app_of: Callable[..., AppTest]) -> Callable[[str], AppTest]:
    """Opens the app with an example, as a first visit does."""
    return lambda name: solved(app_of(name))


def solved(page: AppTest) -> AppTest:
    """The page when nothing is being solved any more."""
    for _ in range(60):
        assert not page.exception, page.exception
        key = page.session_state["fleetplan.asked"]["plan"]
        job = session.workers().wait(key, 1.0)
        if job is not None and job.over:
            return page.run()
    raise AssertionError("never solved")


def words(page: AppTest) -> str:
    parts = [
        *page.markdown,
        *page.caption,
        *page.warning,
        *page.info,
        *page.error,
        *page.text,
        *page.header,
    ]
    return "\n".join(each.value for each in parts)


def edit(page: AppTest, part: str) -> AppTest:
    page.session_state["editing"] = True
    page.session_state["editing-part"] = part
    return page.run()


def metric(page: AppTest, label: str) -> str:
    return next(each.value for each in page.metric if each.label == label)


def test_a_first_visit_shows_a_solved_plan_against_now(visit: Any) -> None:
    page = visit("02-contention")
    assert [title.value for title in page.title] == ["02 contention"]
    assert "OPTIMAL" in words(page)
    assert metric(page, "Unserved") == "0 req/s"
    assert next(each.delta for each in page.metric if each.label == "Cost")
    assert {"Now → planned", "Which node holds which replica"} <= {each.value for each in page.header}


def test_a_relaxation_is_applied_and_undone(visit: Any) -> None:
    page = visit("03-power-cap")
    assert "INFEASIBLE" in words(page)
    assert "The best plan if demand may stay unserved" in words(page)
    assert "Raise the power cap of fleet" in words(page)
    page = solved(press(page, "Apply"))
    assert "OPTIMAL" in words(page)
    assert "What conflicts" not in words(page)
    assert session_scenario(page).limits.power[0].cap_w > 116_000
    page = press(page, "Undo")
    assert "INFEASIBLE" in words(page)
    assert session_scenario(page).limits.power[0].cap_w == 116_000


def test_an_answer_to_what_was_before_an_edit_is_marked_as_such(visit: Any) -> None:
    page = visit("01-two-variants")
    page = rewrite(page, lambda text: text.replace("name: ", "name: my ", 1), "Apply text")
    assert "Edited since this plan" in words(page)
    assert page.metric
    assert all(button.label != "Look closer" for button in page.button)
    page = solved(press(page, "Solve"))
    assert "Edited since this plan" not in words(page)
    assert page.title[0].value == "my 01 two variants"


def test_a_text_with_faults_changes_nothing_and_names_them_all(visit: Any) -> None:
    page = visit("01-two-variants")
    before = session_scenario(page)
    page = rewrite(page, lambda text: text + "\nfoo: 1\nbar: 2\n", "Apply text and solve")
    assert "This does not work yet" in words(page)
    assert all(word in words(page) for word in ("foo", "bar"))
    assert session_scenario(page) == before


def test_how_to_solve_is_a_form_that_solves_again(visit: Any) -> None:
    page = edit(visit("03-power-cap"), "How to solve")
    next(box for box in page.checkbox if box.label == "Demand may stay unserved").check()
    page = solved(press(page, "Solve like this"))
    assert page.session_state["fleetplan.workspace"].how.allow_unserved
    assert "INFEASIBLE" not in words(page)
    assert metric(page, "Unserved") != "0 req/s"


def test_a_service_is_added_as_a_copy_and_a_pool_from_the_catalog(visit: Any) -> None:
    page = edit(visit("01-two-variants"), "Add")
    before = session_scenario(page)
    field(page, "Name of the new service").input("second")
    page = press(page, "Add service")
    field(page, "Name of the new pool").input("spare")
    page = press(page, "Add pool")
    after = session_scenario(page)
    assert [each.id for each in after.services] == [*(each.id for each in before.services), "second"]
    assert after.pools[-1].id == "spare"
    assert "Edited since this plan" in words(page)


def test_what_is_added_needs_a_name_of_its_own(visit: Any) -> None:
    page = edit(visit("01-two-variants"), "Add")
    before = session_scenario(page)
    page = press(page, "Add service")
    assert "needs a name" in words(page)
    field(page, "Name of the new service").input(before.services[0].id)
    page = press(page, "Add service")
    assert "again" in words(page)
    assert session_scenario(page) == before


def test_a_closer_look_prices_the_limits_and_finds_what_is_near(visit: Any) -> None:
    page = visit("01-two-variants")
    page = press(page, "Look closer")
    (key,) = [key for name, key in page.session_state["fleetplan.asked"].items() if name.startswith("closer")]
    job = session.workers().wait(key, 60.0)
    assert job is not None
    assert job.result is not None
    page.session_state["answer-parts"] = "Nearly as good"
    page = page.run()
    assert not page.exception
    assert "Fewest moves" in words(page)
    assert "is not known yet" not in words(page)


@pytest.mark.parametrize(
    ("part", "expected"),
    [("Side by side", "breaks rules"), ("Who pays", "Cost by team"), ("Proof", "Solver")],
)
def test_every_part_of_an_answer_is_drawn(visit: Any, part: str, expected: str) -> None:
    page = visit("02-contention")
    page.session_state["answer-parts"] = part
    page = page.run()
    assert not page.exception
    assert expected in words(page)


def test_the_table_is_narrowed_down_to_a_name(visit: Any) -> None:
    page = visit("02-contention")
    rows = len(page.dataframe[0].value)
    field(page, "Find a service, variant or pool").input("coding").run()
    assert 0 < len(page.dataframe[0].value) < rows
    assert {*page.dataframe[0].value["service"]} == {"coding"}
    field(page, "Find a service, variant or pool").input("no such thing").run()
    assert "Nothing here" in words(page)


def test_names_from_a_file_are_never_markup(visit: Any) -> None:
    page = visit("01-two-variants")
    name = "**bold** <img src=x onerror=alert(1)> [a](javascript:alert(1)) :red[x]"
    page = rewrite(page, lambda text: f"name: {name!r}\n" + text.split("\n", 1)[1], "Apply text and solve")
    page = solved(page)
    assert page.title[0].value.replace("\\", "") == name
    assert "\\*\\*bold\\*\\*" in page.title[0].value


def session_scenario(page: AppTest) -> Any:
    return page.session_state["fleetplan.workspace"].draft.scenario


def field(page: AppTest, label: str) -> Any:
    return next(each for each in page.text_input if each.label == label)


def rewrite(page: AppTest, change: Callable[[str], str], button: str) -> AppTest:
    """The page after its scenario was edited as text."""
    page = edit(page, "Text")
    page.text_area[0].input(change(page.text_area[0].value))
    return press(page, button)


def test_a_stop_keeps_the_best_plan_so_far(visit: Any) -> None:
    """The task itself: whoever asked wants an end at once, and gets greedy's plan or a better one."""
    scenario = session_scenario(visit("02-contention"))
    told: list[str] = []

    class Stopped:
        def progress(self, event: object) -> None:
            """Nobody looks."""

        def partial(self, value: str) -> None:
            told.append(value)

        def stopped(self) -> bool:
            return bool(told)

    given = plan_task(scenario, How()).arguments
    report = Report.model_validate_json(run(given, Stopped()))
    assert Report.model_validate_json(told[0]).answer.name == "greedy"
    assert report.answer.solution.status is not Status.TIMED_OUT
    assert report.shown.assessment is not None


def report_text(page: AppTest) -> str:
    job = session.workers().look(page.session_state["fleetplan.asked"]["plan"])
    assert job is not None
    assert job.result is not None
    return job.result


def test_a_solve_that_goes_on_after_a_stop_shows_what_it_finds(visit: Any) -> None:
    def cost(page: AppTest) -> str:
        return str(next(each.value for each in page.metric if each.label == "Cost"))

    page = visit("01-two-variants")
    proven, answer = cost(page), json.loads(report_text(page))
    answer["answer"]["assessment"]["cost"] = 123.0
    cut(page, "plan", result=json.dumps(answer))
    session.read_report.clear()
    page.run()
    assert "It was stopped" in words(page)
    assert cost(page).startswith("123.00")
    page = over(press(page, "Solve on"), "plan")
    assert "It was stopped" not in words(page)
    assert cost(page) == proven
