"""The chain of sources: who is asked, in which order, and what ends the search."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from models.explanation import Reason
from models.performance import Origin, PerformanceChoice, Rating, RatingQuestion, Unrated
from planner.errors import ConfigurationError
from planner.performance import chosen_sources, rate
from planner.sizing import size
from tests.scenarios import CATALOG, a_scenario, a_service, a_variant

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Says:
    """A source with one answer."""

    name: str
    answer: Rating | Unrated

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        del question
        return self.answer


def a_question(**variant: Any) -> RatingQuestion:
    llm = {
        "id": "one", "parameters": 10**9, "layers": 10, "max_context_tokens": 32_000,
        "attention": {"kind": "gqa", "kv_heads": 4, "head_dim": 100},
    }  # fmt: skip
    return RatingQuestion.model_validate(
        {
            "llm": llm,
            "accelerator": {"id": "acc", "vendor": "Acme", "memory_bytes": 10**10},
            "variant": {"id": "v", "accelerator": "acc"} | variant,
            "input_tokens": 1000,
            "output_tokens": 100,
            "slo": {},
            "thresholds": {},
        }
    )


def knows(name: str, rps: float = 1.0) -> Says:
    rating = Rating(rated_rps=rps, surge_rps=rps, origin=Origin.MODELED, source=f"by {name}")
    return Says(name, rating)


def cannot(name: str, reason: Reason, **fields: Any) -> Says:
    return Says(name, Unrated(reason=reason, facts={"by": name}, **fields))


NEVER_MEASURED = cannot("table", Reason.NO_MEASUREMENT)
WRONG_STATISTIC = cannot("table", Reason.PERCENTILE_NOT_MEASURED)
TOO_SLOW = cannot("model", Reason.SLO_NOT_MET)
TOO_SLOW_WHERE_LARGER = cannot("model", Reason.SLO_NOT_MET, is_open=True)


@pytest.mark.parametrize(
    ("sources", "source"),
    [
        ((knows("a"), knows("b")), "by a"),
        ((NEVER_MEASURED, knows("b")), "by b (table: no measurement)"),
        (
            (NEVER_MEASURED, TOO_SLOW_WHERE_LARGER, knows("b")),
            "by b (table: no measurement, model: slo not met)",
        ),
        ((WRONG_STATISTIC, knows("b")), "by b (table: percentile not measured)"),
    ],
)
def test_the_first_source_that_knows_answers_and_says_who_could_not(
    sources: tuple[Says, ...], source: str
) -> None:
    answer = rate(a_question(), *sources)
    assert isinstance(answer, Rating)
    assert answer.source == source


@pytest.mark.parametrize(
    ("sources", "reason", "by"),
    [
        ((TOO_SLOW, knows("b")), Reason.SLO_NOT_MET, "model"),
        ((NEVER_MEASURED, TOO_SLOW), Reason.SLO_NOT_MET, "model"),
        ((NEVER_MEASURED, WRONG_STATISTIC), Reason.NO_MEASUREMENT, "table"),
    ],
)
def test_a_final_reason_ends_the_search(sources: tuple[Says, ...], reason: Reason, by: str) -> None:
    answer = rate(a_question(), *sources)
    assert isinstance(answer, Unrated)
    assert (answer.reason, answer.facts["by"]) == (reason, by)


def test_given_figures_go_before_every_source() -> None:
    answer = rate(a_question(capacity={"rated_rps": 3.0}), knows("a"))
    assert isinstance(answer, Rating)
    assert (answer.rated_rps, answer.origin) == (3.0, Origin.GIVEN)


def test_without_any_source_nothing_is_known() -> None:
    answer = rate(a_question())
    assert isinstance(answer, Unrated)
    assert answer.reason is Reason.NO_MEASUREMENT


def test_wrong_names_of_sources_and_tables_are_told_together() -> None:
    choice = PerformanceChoice(sources=("mesured",), profiles=("b",))
    with pytest.raises(ConfigurationError) as caught:
        chosen_sources(choice, {"a": ()})
    assert [(found.path, found.suggestion) for found in caught.value.findings] == [
        ("performance.sources[0]", "measured"),
        ("performance.profiles[0]", None),
    ]


def test_a_scenario_that_names_an_unknown_source_is_refused() -> None:
    scenario = a_scenario(
        services=(a_service(variants=(a_variant(),)),), performance={"sources": ("oracle",)}
    )
    with pytest.raises(ConfigurationError, match="oracle"):
        size(scenario, CATALOG)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sources": ()}, "no source"),
        ({"sources": ("measured", "measured")}, "'measured' twice"),
        ({"pessimism": 0.4}, "greater than or equal to 0.5"),
        ({"rows": "guessed"}, "covering"),
    ],
)
def test_choices_that_mean_nothing(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PerformanceChoice.model_validate(fields)


@pytest.mark.parametrize(
    ("variant", "loads"),
    [
        ({"capacity": {"rated_rps": 1.0}}, False),
        ({"queueing": {"alpha_ms": 10.0, "beta_ms_per_token": 0.01, "gamma_ms_per_token": 1e-5}}, True),
    ],
)
def test_the_compiler_is_loaded_when_the_queueing_model_is_asked(
    variant: dict[str, Any], loads: bool
) -> None:
    code = (
        "import sys; from models.performance import PerformanceChoice, RatingQuestion;"
        "from planner.performance import chosen_sources, rate;"
        "sources = chosen_sources(PerformanceChoice(), {});"
        "rate(RatingQuestion.model_validate_json(sys.stdin.read()), *sources);"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=a_question(**variant).model_dump_json(),
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == (str(loads), "")
