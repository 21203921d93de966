"""How each engine is told to change its size, and what its answers mean. Text in, values out; nobody is called here.

Source: vLLM 0.19 to 0.33 (routes, status codes, bodies), Dynamo 1.6.1 (engine control of its vLLM worker), SGLang 0.5.23.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from models.elastic import Dialect, ElasticEngine, LoadBalancing
from models.resize_call import CallAnswer, CallVerdict, ResizeCall, ResizePhase, ResizeStatus
from planner.elastic.versions import traits_of

__all__ = [
    "CALL_TIMEOUT_S",
    "calls_of",
    "curl_of",
    "read_answer",
    "read_size",
    "read_status",
    "size_call",
    "status_call",
]

CALL_TIMEOUT_S: Final = 900.0
"""A call answers when the resize is over; joiners alone may take the 600 s of VLLM_ENGINE_READY_TIMEOUT_S."""
_LOOK_TIMEOUT_S: Final = 10.0
_MESSAGE_AT_MOST: Final = 300
_OK, _BAD, _MISSING, _TIMED_OUT, _CONFLICT, _UNAVAILABLE = 200, 400, 404, 408, 409, 503
_REFUSALS: Final = frozenset({400, 404, 405, 415, 422})
_SGLANG_DONE: Final = "serving_expanded"
_BUSY_WORDS: Final = ("in progress", "already", "currently scaling", "concurrent")


def calls_of(engine: ElasticEngine, urls: Sequence[str], wanted: int) -> tuple[ResizeCall, ...]:
    """The calls of one resize: with one API server one; with one for each rank the same to all old ranks, at once.

    Args:
        engine: who takes them.
        urls: base addresses of the API servers of the ranks that there are now; the first is that of rank 0.
        wanted: data-parallel ranks (expert-parallel ranks for SGLang).
    """
    if engine.dialect is Dialect.SGLANG:
        return (_call(urls[0], "/scale_elastic_ep", {"new_ep_size": wanted}),)
    body = {"new_data_parallel_size": wanted}
    if engine.dialect is Dialect.DYNAMO:
        return (_call(urls[0], "/engine/control/scale_elastic_ep", body),)
    if engine.drains:
        body["drain_timeout"] = round(engine.drain_timeout_s)
    everyone = urls if engine.load_balancing is LoadBalancing.EXTERNAL else urls[:1]
    return tuple(_call(url, "/scale_elastic_ep", body) for url in everyone)


def status_call(engine: ElasticEngine, url: str) -> ResizeCall | None:
    """The call that tells how far a resize is; None: this dialect has none."""
    if engine.dialect is Dialect.DYNAMO:
        return None
    method = "GET" if engine.dialect is Dialect.SGLANG else "POST"
    return ResizeCall(method=method, url=_joined(url, "/is_scaling_elastic_ep"), timeout_s=_LOOK_TIMEOUT_S)


def size_call(engine: ElasticEngine, url: str) -> ResizeCall | None:
    """The call that tells how many ranks serve; None: metrics must tell."""
    if engine.dialect is Dialect.DYNAMO:
        return ResizeCall(url=_joined(url, "/engine/control/ep_capacity"), timeout_s=_LOOK_TIMEOUT_S)
    return status_call(engine, url) if engine.dialect is Dialect.SGLANG else None


def curl_of(call: ResizeCall) -> str:
    """The same as people type it."""
    parts = ["curl", "-sS", "--max-time", f"{call.timeout_s:g}", "-X", call.method, call.url]
    if call.body is not None:
        parts += ["-H", "Content-Type: application/json", "-d", json.dumps(call.body)]
    return shlex.join(parts)


def read_answer(engine: ElasticEngine, status: int, text: str) -> CallAnswer:
    """What an answer to a resize call means."""
    body = _parsed(text)
    if engine.dialect is Dialect.SGLANG:
        return _sglang_answer(status, body, text)
    if engine.dialect is Dialect.DYNAMO:
        return _dynamo_answer(status, body, text)
    return _vllm_answer(status, body, text)


def _vllm_answer(status: int, body: Mapping[str, Any], text: str) -> CallAnswer:
    said = _message(body, text)
    if status == _OK:
        return CallAnswer(verdict=CallVerdict.DONE, message=said, ranks=_number_in(said))
    if status in _REFUSALS:
        return CallAnswer(verdict=CallVerdict.REFUSED, message=said)
    if status == _UNAVAILABLE:
        return CallAnswer(verdict=CallVerdict.BUSY, message=said)
    if status == _TIMED_OUT:
        told = f"a time-out, of the drain or of anything else: {said}"
        return CallAnswer(verdict=CallVerdict.UNKNOWN, message=told)
    return CallAnswer(
        verdict=CallVerdict.UNKNOWN, message=f"HTTP {status}: {said} (the reason is in the server's log)"
    )


def _dynamo_answer(status: int, body: Mapping[str, Any], text: str) -> CallAnswer:
    """Its body counts, whatever the status: ``ok``, or ``error`` with a message."""
    said = _message(body, text)
    if body.get("status") == "ok":
        return CallAnswer(
            verdict=CallVerdict.DONE, message=said, ranks=_count(body.get("new_data_parallel_size"))
        )
    if any(word in said.lower() for word in _BUSY_WORDS):
        return CallAnswer(verdict=CallVerdict.BUSY, message=said)
    if status in _REFUSALS:
        return CallAnswer(verdict=CallVerdict.REFUSED, message=said)
    told = f"{said} (a grow that fails restarts the worker)"
    return CallAnswer(verdict=CallVerdict.UNKNOWN, message=told)


def _sglang_answer(status: int, body: Mapping[str, Any], text: str) -> CallAnswer:
    said = _message(body, text)
    if status == _OK:
        return CallAnswer(verdict=CallVerdict.ACCEPTED, message=said)
    if status == _CONFLICT:
        return CallAnswer(verdict=CallVerdict.BUSY, message=said)
    if status == _MISSING:
        return CallAnswer(verdict=CallVerdict.REFUSED, message=f"elastic sizes are not enabled: {said}")
    if status in _REFUSALS:
        return CallAnswer(verdict=CallVerdict.REFUSED, message=said)
    return CallAnswer(verdict=CallVerdict.UNKNOWN, message=f"HTTP {status}: {said}")


def read_status(engine: ElasticEngine, status: int, text: str) -> ResizeStatus:
    """What the answer to a status call says; whatever cannot be read is unknown."""
    body = _parsed(text)
    if status != _OK or not body:
        return ResizeStatus(phase=ResizePhase.UNKNOWN, message=_message(body, text))
    if engine.dialect is Dialect.SGLANG:
        return _sglang_status(body)
    traits = traits_of(engine)
    rich = traits is not None and traits.tells_phase and engine.load_balancing is LoadBalancing.EXTERNAL
    scaling = body.get("is_scaling_elastic_ep")
    if not isinstance(scaling, bool):
        return ResizeStatus(
            phase=ResizePhase.UNKNOWN, message="the status does not say whether it is scaling"
        )
    phase = _phase(body.get("phase")) or (ResizePhase.COMMITTING if scaling else ResizePhase.IDLE)
    return ResizeStatus(
        phase=phase,
        shows_preparing=rich,
        wanted=_count(body.get("requested_data_parallel_size")),
        message=_line(body.get("error")),
    )


def _sglang_status(body: Mapping[str, Any]) -> ResizeStatus:
    error = _line(body.get("last_error"))
    said = body.get("scale_phase")
    if body.get("is_scaling_elastic_ep") is True:
        phase = ResizePhase.PREPARING
    elif said == _SGLANG_DONE:
        phase = ResizePhase.COMPLETED
    else:
        phase = ResizePhase.FAILED if error else ResizePhase.IDLE
    return ResizeStatus(
        phase=phase,
        shows_preparing=True,
        ranks=_count(body.get("effective_ep_size")),
        wanted=_count(body.get("pending_ep_size")),
        message=error,
    )


def read_size(engine: ElasticEngine, status: int, text: str) -> int | None:
    """How many ranks the answer to a size call says there are; None: it does not say."""
    body = _parsed(text)
    if status != _OK:
        return None
    name = "effective_ep_size" if engine.dialect is Dialect.SGLANG else "data_parallel_size"
    return _count(body.get(name))


def _call(url: str, path: str, body: dict[str, int]) -> ResizeCall:
    return ResizeCall(url=_joined(url, path), body=body, timeout_s=CALL_TIMEOUT_S)


def _joined(url: str, path: str) -> str:
    return f"{url.rstrip('/')}{path}"


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _message(body: Mapping[str, Any], text: str) -> str:
    """The sentence in an answer: flat, or in the error envelope."""
    error = body.get("error")
    nested = error.get("message") if isinstance(error, dict) else error
    return _line(nested or body.get("message") or body.get("detail") or text)


def _line(said: object) -> str:
    if said is None:
        return ""
    return " ".join(str(said).split())[:_MESSAGE_AT_MOST]


def _phase(said: object) -> ResizePhase | None:
    return next((phase for phase in ResizePhase if phase.value == said), None)


def _count(said: object) -> int | None:
    usable = isinstance(said, int) and not isinstance(said, bool) and 0 < said <= 10**6
    return int(said) if usable and isinstance(said, int) else None


def _number_in(said: str) -> int | None:
    """N of ``Scaled to N data parallel engines``."""
    words = said.split()
    return next((int(word) for word in words if word.isdecimal() and 0 < int(word[:7]) <= 10**6), None)
