"""Dialects of resize calls: who is called, with what, and what each answer means."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.elastic import Dialect, ElasticEngine, LoadBalancing
from models.resize_call import CallVerdict, ResizePhase
from planner.elastic.dialects import (
    calls_of,
    curl_of,
    read_answer,
    read_size,
    read_status,
    size_call,
    status_call,
)

INTERNAL = ElasticEngine()
EXTERNAL = ElasticEngine(load_balancing=LoadBalancing.EXTERNAL, data_parallel_backend="mp")
DYNAMO = ElasticEngine(dialect=Dialect.DYNAMO, version="0.31.0")
SGLANG = ElasticEngine(dialect=Dialect.SGLANG, version="0.5.23")
URLS = ["http://r0:8000/", "http://r1:8000"]
DONE, ACCEPTED, REFUSED, BUSY, UNKNOWN = CallVerdict


def envelope(message: str, kind: str, code: int) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "code": code}})


@pytest.mark.parametrize(
    ("engine", "urls", "body"),
    [
        (INTERNAL, ["http://r0:8000/scale_elastic_ep"], {"new_data_parallel_size": 20}),
        (
            EXTERNAL,
            ["http://r0:8000/scale_elastic_ep", "http://r1:8000/scale_elastic_ep"],
            {"new_data_parallel_size": 20},
        ),
        (
            INTERNAL.but(drains=True, drain_timeout_s=90),
            ["http://r0:8000/scale_elastic_ep"],
            {"new_data_parallel_size": 20, "drain_timeout": 90},
        ),
        (DYNAMO, ["http://r0:8000/engine/control/scale_elastic_ep"], {"new_data_parallel_size": 20}),
        (SGLANG, ["http://r0:8000/scale_elastic_ep"], {"new_ep_size": 20}),
    ],
)
def test_each_dialect_is_called_in_its_way(
    engine: ElasticEngine, urls: list[str], body: dict[str, int]
) -> None:
    calls = calls_of(engine, URLS, 20)
    assert [call.url for call in calls] == urls
    assert all(call.body == body and call.method == "POST" and call.timeout_s >= 600 for call in calls)


def test_commands_are_what_people_type() -> None:
    line = curl_of(calls_of(INTERNAL, URLS, 20)[0])
    assert shlex.split(line) == [
        "curl", "-sS", "--max-time", "900", "-X", "POST", "http://r0:8000/scale_elastic_ep",
        "-H", "Content-Type: application/json", "-d", '{"new_data_parallel_size": 20}',
    ]  # fmt: skip


ANSWERS: list[tuple[ElasticEngine, int, str, CallVerdict, str, int | None]] = [
    (INTERNAL, 200, '{"message": "Scaled to 20 data parallel engines"}', DONE, "Scaled to 20", 20),
    (INTERNAL, 400, envelope("minimum is 16", "Bad Request", 400), REFUSED, "minimum is 16", None),
    (INTERNAL, 415, "", REFUSED, "", None),
    (INTERNAL, 408, envelope("drain timed out", "Request Timeout", 408), UNKNOWN, "of anything else", None),
    (INTERNAL, 500, envelope("Scale failed", "Internal Server Error", 500), UNKNOWN, "server's log", None),
    (INTERNAL, 503, '{"error": "The model is currently scaling. Please try again later."}', BUSY, "currently", None),
    (INTERNAL, 502, "<html>Bad gateway</html>", UNKNOWN, "502", None),
    (DYNAMO, 200, '{"status": "ok", "message": "scaled"}', DONE, "scaled", None),
    (DYNAMO, 200, '{"status": "error", "message": "a scale operation is in progress"}', BUSY, "in progress", None),
    (DYNAMO, 200, '{"status": "error", "message": "boom"}', UNKNOWN, "restarts the worker", None),
    (DYNAMO, 400, '{"status": "error", "message": "TP*N must exceed 1"}', REFUSED, "exceed", None),
    (SGLANG, 200, '{"message": "ok", "old_ep_size": 16, "new_ep_size": 20}', ACCEPTED, "ok", None),
    (SGLANG, 409, '{"message": "pending"}', BUSY, "pending", None),
    (SGLANG, 404, "", REFUSED, "not enabled", None),
    (SGLANG, 400, '{"message": "smaller"}', REFUSED, "smaller", None),
    (SGLANG, 500, "", UNKNOWN, "500", None),
]  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: f"{case[0].dialect}-{case[1]}-{case[3]}")
def test_answers_mean_what_they_say(case: tuple[Any, ...]) -> None:
    engine, status, text, verdict, says, ranks = case
    found = read_answer(engine, status, text)
    assert (found.verdict, found.ranks) == (verdict, ranks)
    assert says in found.message


@pytest.mark.parametrize(
    ("engine", "text", "phase", "shows"),
    [
        (INTERNAL, {"is_scaling_elastic_ep": False}, ResizePhase.IDLE, False),
        (INTERNAL, {"is_scaling_elastic_ep": True, "phase": "committing"}, ResizePhase.COMMITTING, False),
        (INTERNAL.but(version="0.30.0"), {"is_scaling_elastic_ep": True}, ResizePhase.COMMITTING, False),
        (EXTERNAL, {"is_scaling_elastic_ep": True, "phase": "preparing"}, ResizePhase.PREPARING, True),
        (EXTERNAL, {"is_scaling_elastic_ep": False, "phase": "failed", "error": "x"}, ResizePhase.FAILED, True),
        (EXTERNAL, {"is_scaling_elastic_ep": False, "phase": "completed"}, ResizePhase.COMPLETED, True),
        (SGLANG, {"is_scaling_elastic_ep": True, "pending_ep_size": 20}, ResizePhase.PREPARING, True),
        (SGLANG, {"is_scaling_elastic_ep": False, "scale_phase": "serving_expanded"}, ResizePhase.COMPLETED, True),
        (SGLANG, {"is_scaling_elastic_ep": False, "last_error": "lost"}, ResizePhase.FAILED, True),
        (INTERNAL, {}, ResizePhase.UNKNOWN, False),
    ],
)  # fmt: skip
def test_phases_are_read(
    engine: ElasticEngine, text: dict[str, Any], phase: ResizePhase, *, shows: bool
) -> None:
    found = read_status(engine, 200, json.dumps(text))
    assert (found.phase, found.shows_preparing) == (phase, shows)


def test_a_status_that_cannot_be_read_is_unknown() -> None:
    assert read_status(EXTERNAL, 503, "").phase is ResizePhase.UNKNOWN
    assert read_status(EXTERNAL, 200, "[]").phase is ResizePhase.UNKNOWN


def test_sizes_come_from_whoever_tells_them() -> None:
    assert size_call(INTERNAL, URLS[0]) is None
    assert status_call(DYNAMO, URLS[0]) is None
    assert read_size(DYNAMO, 200, '{"data_parallel_size": 20}') == 20
    assert read_size(DYNAMO, 200, '{"data_parallel_size": true}') is None
    assert read_size(SGLANG, 200, '{"effective_ep_size": 16}') == 16
    assert read_size(SGLANG, 500, '{"effective_ep_size": 16}') is None


@given(
    st.sampled_from([INTERNAL, EXTERNAL, DYNAMO, SGLANG]),
    st.integers(100, 599),
    st.text() | st.just("[" * 100_000),
)
def test_no_answer_is_ever_taken_for_done_that_does_not_say_so(
    engine: ElasticEngine, status: int, text: str
) -> None:
    found = read_answer(engine, status, text)
    assert len(found.message) < 500
    if found.verdict is DONE:
        assert status == 200 or '"ok"' in text
    read_status(engine, status, text)
    read_size(engine, status, text)
