"""Reasons, limits and figures as people read them."""

from __future__ import annotations

import pytest

from models.explanation import BindingRow, Conflict, Fact, Reason, Relaxation
from models.problem import CostUnit
from models.report import Comparison, EngineWork
from models.solution import Level, Proof, Status
from planner.wording import (
    binding_sentence,
    conflict_rows,
    conflict_sentence,
    engines_sentence,
    family_phrase,
    gpu_label,
    headline,
    level_figures,
    level_name,
    level_rows,
    limit_phrase,
    money,
    now_and_planned,
    number,
    number_up,
    percent,
    promise_sentence,
    quantity,
    quantity_up,
    reason_sentence,
    relaxation_sentence,
    seconds_sentence,
    together_sentences,
    used_of,
)
from tests.builders import a_pool, a_problem, a_solution
from tests.reports import an_assessment, two_services

FAMILIES = (
    "demand", "rate", "headroom", "gpus", "nodes", "placement", "incumbents", "quota", "power", "spend", "bounds",
    "safe_scale_in", "survive", "ratio", "variants", "change",
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (None, "?"), (3.0, "3"), (0.05, "0.05"), (0.123456, "0.1235"), (1234567.8, "1,234,568"), (-2.5, "-2.5"),
     (99999.5, "100,000")],
)  # fmt: skip
def test_a_number(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(46.2, "46.2"), (46.2301, "46.24"), (0.1 + 0.2, "0.3"), (2.0, "2"), (33612.3, "33,613")],
)
def test_a_number_that_must_suffice_is_rounded_up(value: float, text: str) -> None:
    assert number_up(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.123, "12 %"), (0.0001, "0.01 %"), (0.00001, "< 0.01 %"), (1.18, "118 %"), (1, "100 %"), (None, "?"),
     (0.9999, "100 %")],
)  # fmt: skip
def test_a_share_in_percent(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"),
        (12.5, "12.50"),
        (1234.5, "1,234.50"),
        (123456.7, "123,457"),
        (0.0423, "0.042"),
        (None, "?"),
    ],
)
def test_money(value: float | None, text: str) -> None:
    assert money(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(700, "W", "700 W"), (46_200, "W", "46.2 kW"), (1, "GPU", "1 GPU"), (2, "GPU", "2 GPUs"), (0.5, "share", "50 %"),
     (3.2, "req/s", "3.2 req/s"), (1, "replicas", "1 replica"), (2, "1", "2"), (7, "", "7"), (None, "W", "?"), (80 * 2**30, "B", "80 GiB")],
)  # fmt: skip
def test_a_quantity(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_a_quantity_that_must_suffice_is_rounded_up_in_its_larger_unit() -> None:
    assert quantity_up(46_231, "W") == "46.24 kW"


@pytest.mark.parametrize(
    ("used", "limit", "unit", "text"),
    [(40, 40, "GPU", "40 of 40 GPUs"), (39_800, 40_000, "W", "39.8 of 40 kW"), (500, 40_000, "W", "500 W of 40 kW"),
     (1, 3, "node", "1 node of 3 nodes"), (2, 3, "", "2 of 3")],
)  # fmt: skip
def test_the_use_of_a_limit_names_the_unit_once(used: float, limit: float, unit: str, text: str) -> None:
    assert used_of(used, limit, unit) == text


@pytest.mark.parametrize(
    ("current", "pending", "planned", "text"),
    [(3, 0, 5, "3 → 5"), (3, 1, 2, "3+1 → 2"), (3, 0, 3, "3"), (0, 2, 2, "0+2 → 2")],
)
def test_now_and_planned(current: int, pending: int, planned: int, text: str) -> None:
    assert now_and_planned(current, pending, planned) == text


def test_a_layout_of_gpus() -> None:
    assert gpu_label(5, "TP8") == "5 × TP8"
    assert gpu_label(0, "TP8") == "–"


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence_even_without_facts(reason: Reason) -> None:
    sentence = reason_sentence(reason, {})
    assert sentence
    assert "{" not in sentence


@pytest.mark.parametrize("reason", Reason)
def test_no_fact_is_lost(reason: Reason) -> None:
    assert "surprise 17 s" in reason_sentence(reason, {"surprise_s": 17.0})


@pytest.mark.parametrize(
    ("reason", "facts", "sentence"),
    [
        (Reason.NO_POOL_WITH_ACCELERATOR, {"accelerator": "L4"}, "no pool has the accelerator L4"),
        (Reason.WEIGHTS_DO_NOT_FIT,
         {"weight_bytes_per_accelerator": 35 * 2**30, "memory_bytes": 24 * 2**30},
         "the weights need 35 GiB of the 24 GiB that each GPU has, and the cache its own"),
        (Reason.CONTEXT_TOO_LONG, {"needed_tokens": 9000, "max_context_tokens": 8192},
         "a request has 9,000 tokens and the LLM takes at most 8,192 tokens"),
        (Reason.SLO_NOT_MET, {"best_ttft_s": 0.95, "target_ttft_s": 0.8},
         "TTFT is 0.95 s at best, promised are 0.8 s"),
        (Reason.DEARER, {"cost_per_rps": 1.984, "instead": "chat/a@east", "instead_cost_per_rps": 1.587},
         "it costs 1.984 per req/s and chat/a@east costs 1.587"),
        (Reason.LIMIT_BINDS, {"family": "gpus", "limit": "east", "cost_per_rps": 1.984},
         "the GPUs of pool east left no room for it (cost per req/s 1.984)"),
        (Reason.UNKNOWN_PRICE, {"accelerator": None}, "its price is not known"),
    ],
)  # fmt: skip
def test_a_reason_with_its_facts(reason: Reason, facts: dict[str, Fact], sentence: str) -> None:
    assert reason_sentence(reason, facts) == sentence


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_phrases(family: str) -> None:
    assert not family_phrase(family).startswith("the limits of family")
    assert limit_phrase(family, ("one", "two"))
    assert limit_phrase(family, ())


@pytest.mark.parametrize(
    ("family", "key", "phrase"),
    [
        ("gpus", ("eu-west",), "the GPUs of pool eu-west"),
        ("placement", ("eu-west", "4"), "room on single nodes of eu-west for pods of 4 GPUs"),
        ("placement", ("eu-west", "rack-1", "8"), "room on single nodes of eu-west / rack-1 for pods of 8 GPUs"),
        ("survive", ("chat", "aggregated", "both", "zone-a"),
         "the promise that chat survives the loss of zone-a"),
        ("rate", ("chat", "disaggregated", "prefill"), "the rated capacity of chat (prefill)"),
        ("headroom", ("chat", "aggregated", "both"), "the capacity of chat with headroom"),
        ("spend", (), "the budget"),
        ("carbon", ("hall-1",), "carbon hall-1"),
    ],
)  # fmt: skip
def test_a_limit_as_a_phrase(family: str, key: tuple[str, ...], phrase: str) -> None:
    assert limit_phrase(family, key) == phrase


def test_a_limit_that_binds() -> None:
    row = BindingRow(family="power", key=("hall-1",), used=39_800, limit=40_000, unit="W")
    assert binding_sentence(row) == "The power cap of hall-1: 39.8 of 40 kW are used."


@pytest.mark.parametrize(
    ("used", "free", "sentence"),
    [
        (4, 7, "Pool own has 7 free GPUs but no node with 4 free ones: 4 of 4 pods of 4 GPUs are placed."),
        (0, 25, "Pool own has 25 free GPUs but no node with 4 free ones: 0 of 0 pods of 4 GPUs are placed."),
    ],
)
def test_free_gpus_that_no_node_has_enough_of(used: int, free: int, sentence: str) -> None:
    row = BindingRow(
        family="placement", key=("own", "4"), used=used, limit=used, unit="pods of 4 GPUs",
        facts={"free_gpus": free},
    )  # fmt: skip
    assert binding_sentence(row) == sentence


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        ("min", "The least ratio of prefill to decode replicas of chat: 3 replicas are owed and 3 replicas are there."),
        ("max", "The largest ratio of prefill to decode replicas of chat: 3 of 3 replicas are used."),
    ],
)  # fmt: skip
def test_a_ratio_at_its_bound(side: str, sentence: str) -> None:
    row = BindingRow(family="ratio", key=("chat", side), used=3, limit=3, unit="replica")
    assert binding_sentence(row) == sentence


def test_capacity_that_is_just_enough() -> None:
    row = BindingRow(family="rate", key=("chat", "aggregated", "both"), used=13.8, limit=14.4, unit="req/s")
    assert (
        binding_sentence(row) == "The rated capacity of chat: 13.8 req/s are owed and 14.4 req/s are there."
    )


@pytest.mark.parametrize(
    ("families", "sentence"),
    [
        (("demand", "power"),
         "The promise to serve all demand and the power caps cannot both hold; without either one the other can."),
        (("demand", "power", "spend"),
         "The promise to serve all demand, the power caps and the budget cannot all hold; "
         "without any one of them the rest can."),
        (("bounds",), "The bounds on replicas cannot be kept, whatever else is given up."),
    ],
)  # fmt: skip
def test_a_conflict(families: tuple[str, ...], sentence: str) -> None:
    assert conflict_sentence(Conflict(families=families)) == sentence


@pytest.mark.parametrize(
    ("family", "key", "limit", "needed", "unit", "sentence"),
    [
        ("power", ("hall-1",), 40_000, 46_200, "W", "Raise the power cap of hall-1 from 40 kW to 46.2 kW."),
        ("gpus", ("eu-west",), 16, 18, "GPU", "2 more H100 in eu-west."),
        ("nodes", ("eu-west",), 1, 3, "node", "Allow 3 nodes instead of 1 to be added to pool eu-west."),
        ("spend", (), 40, 51.234, "$/h", "Raise the budget from 40 $/h to 51.24 $/h."),
        ("demand", ("chat",), 10, 8.1239, "req/s", "Promise 8.123 instead of 10 req/s for chat."),
        ("change", (), 2, 5, "change", "Allow 5 changes instead of 2 in all."),
        ("quota", ("team-a",), 8, 12, "GPU", "Raise quota team-a from 8 GPUs to 12 GPUs."),
        ("bounds", ("chat",), 4, 6, "replicas", "Allow 6 replicas instead of 4 for chat."),
        ("bounds", ("chat", "small"), 4, 3, "replicas", "Ask for 3 replicas instead of 4 for chat / small."),
        ("change", ("chat/small@east",), 1, 2, "replicas", "Allow 2 replicas instead of 1 for chat/small@east."),
        ("headroom", ("chat",), 0.5, 0.1239, "share", "Keep 12.39 % instead of 50 % as headroom for chat."),
        ("headroom", ("chat",), 5, 2.5, "req/s", "Keep 2.5 req/s instead of 5 req/s as headroom for chat."),
        ("headroom", ("chat",), 5, 0, "req/s", "Keep no headroom for chat instead of 5 req/s."),
        ("survive", ("chat",), 0.9, 0.747, "share",
         "Promise that 74.7 % instead of 90 % of chat survives the loss of a failure domain."),
        ("survive", ("chat",), 0.9, 0, "share",
         "Give up the promise that chat survives the loss of a failure domain."),
        ("ratio", ("chat", "max"), 1, 3, "prefill per decode",
         "Change the largest ratio of prefill to decode replicas of chat to 3 from 1."),
        ("safe_scale_in", ("chat/small@east",), 4, 3, "replicas",
         "Let 3 instead of 4 replicas of chat/small@east stay, though its saturation does not permit it."),
        ("variants", ("chat", "both"), 1, 2, "variants", "Let 2 variants instead of 1 of chat run at once."),
        ("incumbents", (), 0, 2, "moves", "Let 2 replicas that run on known nodes move."),
        ("slo", ("chat",), 1, 1.25, "times", "Promise chat 1.25 times its latencies."),
        ("carbon", ("hall-1",), 4, 2, "t", "Lower carbon hall-1 from 4 t to 2 t."),
    ],
)  # fmt: skip
def test_a_relaxation_in_the_terms_of_the_user(
    family: str, key: tuple[str, ...], limit: float, needed: float, unit: str, sentence: str
) -> None:
    relaxation = Relaxation(family=family, key=key, limit=limit, needed=needed, unit=unit, verified=True)
    problem = a_problem(pools=[a_pool("east"), a_pool("eu-west")])
    assert relaxation_sentence(relaxation, problem) == sentence


def test_a_relaxation_that_nobody_verified_says_so() -> None:
    relaxation = Relaxation(family="spend", key=(), limit=1, needed=2, unit="$/h", verified=False)
    assert relaxation_sentence(relaxation, a_problem()).endswith(
        "(an estimate; no plan with it was verified)."
    )


def test_a_relaxation_names_the_plan_that_it_allows() -> None:
    relaxation = Relaxation(
        family="power", key=("hall",), limit=40_000, needed=46_200, unit="W", verified=True, cost=922.48
    )
    said = "Raise the power cap of hall from 40 kW to 46.2 kW: allows a plan at"
    assert relaxation_sentence(relaxation, a_problem()) == f"{said} 922.5 $/h."
    relative = a_problem(cost_unit=CostUnit.RELATIVE)
    assert relaxation_sentence(relaxation, relative) == f"{said} a cost of 922.5."


def test_rows_of_a_conflict_are_grouped_by_family() -> None:
    rates = [("rate", f"s{number:02}", "aggregated", "both") for number in range(14)]
    rows = (*rates, ("placement", "east", "4"), ("placement", "east", "n0"), ("spend",))
    names = ", ".join(f"s{number:02}" for number in range(12))
    assert conflict_rows(Conflict(families=("rate", "placement", "spend"), rows=rows)) == [
        f"serving all demand inside its latency promises: {names} and 2 more",
        "room on single nodes of east",
        "the budget",
    ]


def answer(status: Status, *levels: Level, judged: bool = True, unserved_rps: float = 0.0) -> Comparison:
    problem = a_problem()
    solution = a_solution(problem, {}, status=status, proof=Proof(solver="test", levels=levels))
    figures = an_assessment(problem, {}, unserved_rps=unserved_rps, unserved_share_worst=unserved_rps / 10)
    return Comparison(name="test", solution=solution, assessment=figures if judged else None)


OPEN = Level(name="cost", value=100, bound=98.7, gap=0.013, unit="$/h")


@pytest.mark.parametrize(
    ("comparison", "sentence"),
    [
        (answer(Status.INFEASIBLE, judged=False), "No plan keeps every promise."),
        (answer(Status.TIMED_OUT, judged=False),
         "No plan was found in the time given. There may be one: allow more time."),
        (answer(Status.FAILED, judged=False), "The solver failed; it gave no plan."),
        (answer(Status.OPTIMAL, OPEN.but(gap=0.0)), "All demand is served; no plan is better in the order cost."),
        (answer(Status.FEASIBLE, OPEN, unserved_rps=2.5),
         "2.5 req/s stay unserved (up to 25 % of a service). "
         "The proof was not finished: in cost, the best there can be is at most 1.3 % lower."),
        (answer(Status.FEASIBLE, OPEN.but(bound=None, gap=None)),
         "All demand is served. The proof was not finished: in cost, no bound is known."),
        (answer(Status.FEASIBLE), "All demand is served. The proof that no plan is better was not finished."),
        (answer(Status.OPTIMAL, judged=False), "There is a plan, and nobody judged it."),
    ],
)  # fmt: skip
def test_a_status_in_one_sentence(comparison: Comparison, sentence: str) -> None:
    assert headline(comparison) == sentence


def test_scarcity_without_a_plan_says_so() -> None:
    assert headline(answer(Status.INFEASIBLE, judged=False), scarce=True) == (
        "No plan keeps every limit, even if all demand stays unserved."
    )


def test_a_heuristic_proves_nothing() -> None:
    assert headline(answer(Status.FEASIBLE), proves=False) == (
        "All demand is served. A heuristic found it; nothing is proven."
    )


@pytest.mark.parametrize(
    ("level", "figures"),
    [
        (OPEN, ("100 $/h", "98.7 $/h", "1.3 %")),
        (OPEN.but(bound=None, gap=None), ("100 $/h", "unknown", "unknown")),
        (OPEN.but(value=0, bound=0, gap=0), ("0 $/h", "0 $/h", "0 %")),
        (OPEN.but(value=0, bound=-2, gap=2), ("0 $/h", "-2 $/h", "2 $/h")),
    ],
)
def test_a_level_in_figures(level: Level, figures: tuple[str, str, str]) -> None:
    assert level_figures(level) == figures


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cost", "cost"),
        ("unserved-share/priority1", "unserved share, priority 1"),
        ("unserved-load", "unserved load"),
        ("unserved-load/priority-2/batch", "unserved load, priority -2, batch"),
    ],
)
def test_a_level_by_name(name: str, said: str) -> None:
    assert level_name(OPEN.but(name=name)) == said


def zero(name: str) -> Level:
    return Level(name=name, value=0.0, bound=0.0, gap=0.0, unit="share" if "share" in name else "req/s")


SHED = (
    Level(name="unserved-share/priority2", value=0.5, bound=0.5, gap=0.0, unit="share"),
    Level(name="unserved-load/priority2", value=24.0, bound=24.0, gap=0.0, unit="req/s"),
)
SHED_ROWS = [
    ("unserved share, priority 2", "50 %", "50 %", "0 %"),
    ("unserved load, priority 2", "24 req/s", "24 req/s", "0 %"),
]
SERVED = tuple(zero(f"unserved-{kind}/priority{n}") for n in (8, 7, 3) for kind in ("share", "load"))


@pytest.mark.parametrize(
    ("levels", "rows"),
    [
        ((zero("unserved"),), [("unserved", "0 req/s", "0 req/s", "0 %")]),
        (SERVED, [("unserved", "0 req/s", "0 req/s", "0 %")]),
        (
            (*SERVED, *SHED),
            [("unserved, priority 8 to 3", "0 req/s", "0 req/s", "0 %"), *SHED_ROWS],
        ),
        (
            (*SHED, zero("unserved-share/priority1"), zero("unserved-load/priority1")),
            [*SHED_ROWS, ("unserved, priority 1", "0 req/s", "0 req/s", "0 %")],
        ),
    ],
    ids=["promised", "goals-reached", "less-important-shed", "shed-first"],
)
def test_demand_that_is_served_in_full_is_one_row(
    levels: tuple[Level, ...], rows: list[tuple[str, str, str, str]]
) -> None:
    assert list(level_rows(levels)) == rows


def test_promises_that_are_not_kept_are_named() -> None:
    assert promise_sentence(["a", "b"]) == "The promise to serve all demand is not kept for a, b."
    assert promise_sentence([f"s{n}" for n in range(10)]).endswith("s6, s7 and 2 more.")


def test_classes_of_unserved_demand_are_one_in_the_order() -> None:
    names = ("unserved-share/priority2", "unserved-load/priority2", "unserved-share/priority1", "cost")
    levels = [OPEN.but(name=name, gap=0.0) for name in names]
    assert headline(answer(Status.OPTIMAL, *levels)).endswith(
        "no plan is better in the order unserved, cost."
    )


def test_seconds_by_phase() -> None:
    assert seconds_sentence({"size": 0.02, "solve": 0.31}) == "0.33 s: size 0.02, solve 0.31"


def test_limits_that_move_together_share_one_plan() -> None:
    spend = Relaxation(family="spend", key=(), limit=5.0, needed=25.0, unit="$/h", verified=True, cost=25.0)
    gpus = Relaxation(
        family="gpus", key=("eu-west",), limit=2, needed=4, unit="GPUs", verified=True, cost=25.0
    )
    problem = two_services()
    assert together_sentences([spend, gpus], problem) == (
        "No single limit is enough; all of these together allow a plan at 25 $/h",
        ["Raise the budget from 5 $/h to 25 $/h.", "2 more H100 in eu-west."],
    )
    guessed = [each.but(verified=False, cost=None) for each in (spend, gpus)]
    assert together_sentences(guessed, problem)[0].endswith("by an estimate: no plan with them was verified")


def test_an_engine_that_worked_twice_is_named_once() -> None:
    work = [
        EngineWork(engine=name, seconds=seconds) for name, seconds in (("a", 0.5), ("b", 1.0), ("a", 0.25))
    ]
    assert engines_sentence(work) == "engines: a 0.75 s, b 1.00 s"


def test_what_counts_changes_is_told_as_their_limit() -> None:
    rows = (("power", "hall"), ("change",), ("change", "chat/a@east", "down"))
    assert conflict_rows(Conflict(families=("power", "change"), rows=rows)) == [
        "the power cap of hall", "the limit on changes",
    ]  # fmt: skip
    steps = (("change",), ("change", "chat/a@east"))
    assert conflict_rows(Conflict(families=("change",), rows=steps)) == [
        "the limits on changes: in all, chat/a@east"
    ]


@pytest.mark.parametrize(
    ("reason", "facts", "said"),
    [
        (Reason.POD_LARGER_THAN_NODE, {"gpus_per_pod": 1, "largest_node_gpus": 0},
         "a pod needs 1 GPU and the largest node has 0 GPUs"),
        (Reason.DEARER, {"cost_per_rps": 1.5, "instead": "chat/a@east", "instead_cost_per_rps": 1.25},
         "it costs 1.5 $/h per req/s and chat/a@east costs 1.25 $/h"),
    ],
)  # fmt: skip
def test_reasons_have_their_units(reason: Reason, facts: dict[str, Fact], said: str) -> None:
    assert reason_sentence(reason, facts, CostUnit.USD_PER_H) == said
