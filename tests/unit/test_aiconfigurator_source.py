"""AIConfigurator as a source: what it is asked, what becomes of its answers, and that nothing reaches the network."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

import pytest

from models.explanation import Reason
from models.performance import Origin, PerformanceChoice, Rating, RatingQuestion, Unrated
from planner.catalog import load_catalog
from planner.performance import chosen_sources, rate
from planner.performance.aiconfigurator import AiconfiguratorSource
from planner.performance.aiconfigurator.estimator import Setup, Steps, Untold, installed_estimator

installed = pytest.mark.skipif(
    find_spec("aiconfigurator") is None, reason="the extra 'aiconfigurator' is not installed"
)

# As aiconfigurator 0.12.0 answered for Qwen3-32B, two H100, vLLM 0.24.0, 1024 in and 512 out.
RECORDED: Final = Steps(
    0.0554868, ((1, 0.01342653), (16, 0.01540816), (96, 0.02061673)), "aiconfigurator 0.12.0, recorded"
)


@dataclass
class Recorded:
    """An estimator with one answer that remembers what it was asked."""

    answer: Steps | Untold = RECORDED
    asked: list[tuple[Setup, tuple[int, ...]]] = field(default_factory=list)

    def __call__(self, setup: Setup, batches: tuple[int, ...]) -> Steps | Untold:
        self.asked.append((setup, batches))
        return self.answer


def a_question(*, llm: str = "Qwen3-32B", accelerator: str = "H100", **changes: Any) -> RatingQuestion:
    catalog = load_catalog()
    fields: dict[str, Any] = {
        "llm": catalog.llm(llm),
        "accelerator": catalog.accelerator(accelerator),
        "variant": {"id": "v", "accelerator": accelerator, "parallelism": {"tp": 2}},
        "input_tokens": 1024,
        "output_tokens": 512,
        "slo": {"itl_s": 0.03, "ttft_s": 1.0},
        "thresholds": {},
    }
    return RatingQuestion.model_validate(fields | changes)


def rated(question: RatingQuestion, estimator: Any = None) -> Rating:
    found = AiconfiguratorSource(estimator or Recorded()).rate(question)
    assert isinstance(found, Rating), found
    return found


def test_an_answer_is_modeled_and_names_whose_it_is() -> None:
    found = rated(a_question())
    assert found.origin is Origin.MODELED
    assert found.source.startswith("aiconfigurator 0.12.0, recorded; queueing model, its step times")
    assert found.itl_s is not None
    assert found.ttft_s is not None
    # Prefills of others share the iterations, and requests wait: slower than the static estimates.
    assert 0.0134 < found.itl_s <= 0.03
    assert 0.0555 < found.ttft_s <= 1.0


def test_tighter_promises_give_lower_rates() -> None:
    rates = [rated(a_question(slo={"itl_s": itl})).rated_rps for itl in (0.016, 0.02, 0.03)]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


def test_percentiles_are_answered_too() -> None:
    mean, tail = (rated(a_question(slo={"ttft_s": 0.12, "at": at})).rated_rps for at in ("mean", 99.0))
    assert tail < mean


def test_it_is_asked_in_its_own_words() -> None:
    estimator = Recorded()
    variant = {
        "id": "v", "accelerator": "H200", "parallelism": {"tp": 4, "dp": 2, "ep": 8}, "engine": "sglang",
        "quantization": {"weights": "fp8", "kv_cache": "fp8"},
    }  # fmt: skip
    rated(a_question(llm="Qwen3-235B-A22B", accelerator="H200", variant=variant), estimator)
    setup, batches = estimator.asked[0]
    assert "Qwen/Qwen3-235B-A22B" in setup.models
    assert "h200_sxm" in setup.systems
    assert (setup.backend, setup.tp, setup.dp, setup.moe) == ("sglang", 4, 2, (1, 8))
    assert (setup.weights, setup.kv_cache) == ("fp8", "fp8")
    assert batches[0] == 1


@pytest.mark.parametrize(
    ("variant", "why"),
    [
        ({"engine": "mlc"}, "the engine mlc"),
        ({"quantization": {"weights": "fp32"}}, "the precision fp32"),
        ({"quantization": {"kv_cache": "fp4"}}, "the precision fp4"),
    ],
)
def test_what_it_has_no_word_for_is_left_to_others(variant: dict[str, Any], why: str) -> None:
    question = a_question(variant={"id": "v", "accelerator": "H100", "parallelism": {"tp": 2}} | variant)
    found = AiconfiguratorSource(Recorded()).rate(question)
    assert isinstance(found, Unrated)
    assert found.may_be_known_elsewhere
    assert why in str(found.facts["aiconfigurator"])


def test_what_it_cannot_tell_goes_on_to_the_next_source() -> None:
    found = rate(
        a_question(), AiconfiguratorSource(Recorded(Untold("no tables"))), AiconfiguratorSource(Recorded())
    )
    assert isinstance(found, Rating)
    assert "aiconfigurator: no measurement" in found.source
    alone = rate(a_question(), AiconfiguratorSource(Recorded(Untold("no tables"))))
    assert isinstance(alone, Unrated)
    assert (alone.reason, alone.facts["aiconfigurator"]) == (Reason.NO_MEASUREMENT, "no tables")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@installed
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_network")
def test_the_installed_library_answers_as_recorded_and_offline(capfd: pytest.CaptureFixture[str]) -> None:
    (source,) = chosen_sources(PerformanceChoice(sources=("aiconfigurator",)), {})
    real, recorded = source.rate(a_question()), rated(a_question())
    assert isinstance(real, Rating), real
    assert real.rated_rps == pytest.approx(recorded.rated_rps, rel=0.02)
    assert real.itl_s == pytest.approx(recorded.itl_s, rel=0.02)
    assert capfd.readouterr() == ("", "")


@installed
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("question", "why"),
    [
        ({"llm": {"id": "nobody/nothing"}}, "no configuration of nobody/nothing"),
        ({"accelerator": {"id": "X1"}}, "no tables of X1"),
    ],
)
def test_the_installed_library_says_what_it_does_not_know(
    question: dict[str, dict[str, str]], why: str
) -> None:
    known = a_question()
    changed = {name: getattr(known, name).but(**fields, aliases=()) for name, fields in question.items()}
    found = AiconfiguratorSource(installed_estimator()).rate(known.but(**changed))
    assert isinstance(found, Unrated)
    assert why in str(found.facts["aiconfigurator"])
