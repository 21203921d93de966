"""Whatever a page or an answer holds: it is read or counted, never raised, and nothing comes of nothing."""

from __future__ import annotations

import json
import math

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.observation import VariantObservation
from models.variant import KubernetesObject
from planner.clock import FakeClock
from planner.control.collectors.exposition import PageLimits, parse
from planner.control.collectors.names import ENGINE_MEASURES, ROUTER_MEASURES
from planner.control.collectors.pages import Origin, PageBook
from planner.control.collectors.prometheus import PrometheusOptions, PrometheusSource
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.protocols import MetricsReading

VARIANT = VariantObservation(
    name="v", namespace="n", model="m", target=KubernetesObject(name="v"), pods=("p", "q")
)
_NAMES = sorted(
    {name for measure in (*ENGINE_MEASURES, *ROUTER_MEASURES) for way in measure.ways for name in way.series}
)
_KEYS = ("model_name", "engine", "dp_rank", "pod", "namespace", "instance", "target_model_name", "status", "num_gpu_blocks", "block_size", "UUID", "gpu")  # fmt: skip
_VALUES = st.one_of(
    st.floats(),
    st.sampled_from([0.0, 1.0, -1.0, 1e300, -1e300, math.nan, math.inf, 2.0**63]),
)
_TEXTS = st.one_of(
    st.text(max_size=12), st.sampled_from(["m", "n", "p", "0", "1", "success", "NaN", "1e999", "-5"])
)
_LABELS = st.dictionaries(st.sampled_from(_KEYS), _TEXTS, max_size=5)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@st.composite
def lines(draw: st.DrawFn) -> str:
    labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in draw(_LABELS).items())
    stamp = draw(st.one_of(st.just(""), st.integers(-(10**20), 10**20).map(lambda at: f" {at}")))
    return f"{draw(st.sampled_from(_NAMES))}{{{labels}}} {draw(_VALUES)!r}{stamp}"


@st.composite
def pages(draw: st.DrawFn) -> str:
    page = "\n".join(draw(st.lists(st.one_of(lines(), st.text(max_size=30)), max_size=12)))
    return page[: draw(st.integers(0, len(page)))] if draw(st.booleans()) else page


def holds(reading: MetricsReading) -> None:
    """What the reading says can be: every value is bounded, and every ready pod is there, known or not."""
    assert {"p", "q"} <= {engine.pod for engine in reading.engines}
    for value in (*reading.engines, *reading.traffic):
        assert all(math.isfinite(each) and each >= 0 for _, each in value if isinstance(each, float))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(pages(), min_size=1, max_size=4), st.floats(0, 1e10))
def test_pages_over_time_never_raise(texts: list[str], now_s: float) -> None:
    book = PageBook()
    for index, text in enumerate(texts):
        book.take(Origin("a:1", "n"), text, now_s + 15.0 * index)
    holds(book.reading([VARIANT], now_s + 15.0 * len(texts)))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_page(text: str) -> None:
    page = parse(text, lambda _: True, limits=PageLimits(samples=20, labels=3))
    assert len(page.samples) <= 20


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=20), max_size=6),
    st.floats(),
)
def test_what_is_written_is_read_back(labels: dict[str, str], value: float) -> None:
    written = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    (sample,) = parse(f"x{{{written}}} {value!r}", lambda _: True).samples
    assert sample.labels == labels
    assert sample.value == value or (math.isnan(sample.value) and math.isnan(value))


_ELEMENTS = st.lists(
    st.fixed_dictionaries(
        {"metric": _LABELS, "value": st.tuples(st.floats(-1e12, 1e12), _VALUES.map(str))}
    ),
    max_size=4,
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(_ELEMENTS, min_size=1, max_size=6), st.booleans())
def test_answers_of_prometheus_never_raise(answers: list[list[object]], quick: bool) -> None:
    asked = iter(range(10**6))

    def answer(_: httpx.Request) -> httpx.Response:
        result = answers[next(asked) % len(answers)]
        document = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return httpx.Response(200, text=json.dumps(document, separators=(",", ":") if quick else None))

    options = PrometheusOptions(url="http://127.0.0.1:1", parallel=1)
    api = PrometheusApi(options, FakeClock(), transport=httpx.MockTransport(answer))
    holds(PrometheusSource(options, FakeClock(), api=api).read([VARIANT], 1e9))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_that_says_nothing(body: bytes) -> None:
    options = PrometheusOptions(url="http://127.0.0.1:1", parallel=1)
    api = PrometheusApi(
        options, FakeClock(), transport=httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    )
    reading = PrometheusSource(options, FakeClock(), api=api).read([VARIANT], 1e9)
    assert not reading.complete
    holds(reading)
