"""An elastic deployment over HTTP: calls, status, health, a fixed prompt, and how many ranks there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx

from models.elastic import ElasticEngine, LoadBalancing
from models.resize_call import CallAnswer, CallVerdict, ResizeCall, ResizePhase, ResizeStatus
from models.resize_operation import ResizeOperation
from planner.control.collectors.access import Fault
from planner.control.collectors.transport import Connections
from planner.control.resizing.world import ANSWERS
from planner.elastic.dialects import (
    CALL_TIMEOUT_S,
    calls_of,
    read_answer,
    read_size,
    read_status,
    size_call,
    status_call,
)

__all__ = ["PROMPT", "HttpEngine"]

PROMPT: Final = "Name the capital of France in one word."
_ANSWER_TOKENS: Final = 8
_LOOK_S: Final = 10.0
_PROBE_S: Final = 60.0
_MOVES: Final = 2
"""Looks in which every rank that stayed moved, and none of those that should have left."""
_QUESTIONS: Final = 64
_LONGEST: Final = 4000
_MOST_BYTES: Final = 32 * 2**20
_OK: Final = 200
_OPEN: Final = (_OK, 401, 404)
"""A path that is there for some: the gate, which answers 503, let the question through."""
_MODELS: Final = "/v1/models"
_SERIES: Final = re.compile(
    r"^(vllm:(?:num_requests_running|generation_tokens_total|request_success_total))\{([^}]*)\}\s+(\S+)",
    re.MULTILINE,
)
_LOAD: Final = re.compile(
    r"^vllm:num_requests_(?:running|waiting)\{([^}]*)\}\s+(\d+(?:\.\d*)?(?:e\+?\d+)?)\s*$", re.MULTILINE
)
_RANK: Final = re.compile(r'engine="(\d{1,6})"')


class HttpEngine:
    """One deployment, as :class:`planner.control.resizing.world.Engine`.

    With one API server, ranks are counted by the ``engine`` labels of its metrics. They are made anew in a grow; after
    a shrink those of ranks that left stay for ever, so there the answer to the call counts. Where that is not known, the
    figures of ranks that still move tell; where none moves, nobody knows.

    Args:
        engine: what it is started as.
        urls: API servers; with one for each rank, those of all ranks that may be, in their order.
        connections: that calls use.
        operation: on its way, where one is; its answer tells a size that metrics do not.
    """

    def __init__(
        self,
        engine: ElasticEngine,
        urls: Sequence[str],
        connections: Connections,
        *,
        operation: ResizeOperation | None = None,
        model: str = "",
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self._engine = engine
        self._urls = tuple(urls)
        self._connections = connections
        self._model = model
        self._timeout_s = timeout_s
        self._told: int | None = None
        self._doubted: int | None = None
        self._moving: Counter[int] = Counter()
        self._seen: dict[tuple[str, int], float] = {}
        if operation is not None and operation.called_s is not None:
            self._hear(operation, operation.answer)

    def call(self, operation: ResizeOperation) -> CallAnswer:
        """Every call at once; only where all say the same is that the answer."""
        calls = calls_of(self._engine, self._urls[: operation.from_ranks], operation.to_ranks)
        calls = tuple(call.but(timeout_s=self._timeout_s) for call in calls)
        with ThreadPoolExecutor(len(calls)) as pool:
            found = _together(list(pool.map(self._order, calls)))
        self._moving.clear()
        self._seen.clear()
        self._hear(operation, found.verdict)
        return found

    def _hear(self, operation: ResizeOperation, verdict: CallVerdict | None) -> None:
        """What an answer, or that none is known, tells of sizes that metrics do not show."""
        shrinks = not operation.grows
        unknown = verdict not in (CallVerdict.DONE, CallVerdict.REFUSED)
        self._told = operation.to_ranks if verdict is CallVerdict.DONE else None
        self._doubted = operation.to_ranks if shrinks and unknown else None

    def _order(self, call: ResizeCall) -> CallAnswer:
        try:
            status, text = self._sent(call)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return CallAnswer(
                verdict=CallVerdict.REFUSED, message="it cannot be reached: the call was never sent"
            )
        except (httpx.HTTPError, Fault, OSError) as cause:
            told = f"no answer ({type(cause).__name__}): it may go on"
            return CallAnswer(verdict=CallVerdict.UNKNOWN, message=told)
        return read_answer(self._engine, status, text)

    def status(self) -> ResizeStatus:
        """See :class:`planner.control.resizing.world.Engine`."""
        call = status_call(self._engine, self._urls[0])
        if call is None:
            return ResizeStatus(phase=ResizePhase.UNKNOWN)
        found = self._looked(call)
        return ResizeStatus(phase=ResizePhase.UNKNOWN) if found is None else read_status(self._engine, *found)

    def healthy(self) -> bool | None:
        """Whether it serves: its health, and a path that is closed while it changes and after a failed commit."""
        for path in ("/health", _MODELS):
            found = self._page(self._urls[0], path)
            if found is None:
                return None
            if found[0] != _OK and not (path == _MODELS and found[0] in _OPEN):
                return False
        return True

    def ranks(self) -> int | None:
        """See :class:`planner.control.resizing.world.Engine`."""
        call = size_call(self._engine, self._urls[0])
        if call is not None:
            found = self._looked(call)
            return None if found is None else read_size(self._engine, *found)
        if self._engine.load_balancing is LoadBalancing.EXTERNAL:
            return self._serving_ranks()
        return self._ranks_in_metrics()

    def in_flight(self, first: int) -> float | None:
        """Requests that run on, or wait for, the ranks from this number on; None: one of them does not say."""
        external = self._engine.load_balancing is LoadBalancing.EXTERNAL
        # Addresses are those of all ranks that may be: those that are not there have nothing to say.
        last = self._serving_ranks() if external else None
        if external and last is None:
            return None
        total = 0.0
        for url in self._urls[first:last] if external else self._urls[:1]:
            page = self._page(url, "/metrics")
            if page is None or page[0] != _OK:
                return None
            found = [
                float(value)
                for labels, value in _LOAD.findall(page[1])
                if external or ((rank := _RANK.search(labels)) is not None and int(rank[1]) >= first)
            ]
            if not found:
                return None
            total += sum(found)
        return total

    def answer(self) -> str | None:
        """What it answers to :data:`PROMPT`, the first tokens of it; where ranks answer in different ways, all of them.

        With one API server for each rank every rank is asked. With one for all, it spreads so many questions at once that
        each rank may get some.
        """
        ranks = self.ranks()
        if self._engine.load_balancing is LoadBalancing.EXTERNAL:
            asked = self._urls[: ranks or 1]
        else:
            asked = self._urls[:1] * min(_QUESTIONS, 2 * (ranks or 1))
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = set(pool.map(self._asked, asked))
        told = sorted(each for each in answers if each is not None)
        return None if None in answers or not told else ANSWERS.join(told)[:_LONGEST]

    def _asked(self, url: str) -> str | None:
        body: dict[str, object] = {
            "prompt": PROMPT,
            "max_tokens": _ANSWER_TOKENS,
            "temperature": 0,
            "seed": 0,
        }
        if self._model:
            body["model"] = self._model
        try:
            answer = self._client(url).post(f"{url.rstrip('/')}/v1/completions", json=body, timeout=_PROBE_S)
            said = answer.json()["choices"][0]["text"] if answer.status_code == _OK else None
        except (httpx.HTTPError, Fault, OSError, ValueError, LookupError, TypeError):
            return None
        return said[:_LONGEST] if isinstance(said, str) else None

    def _serving_ranks(self) -> int | None:
        """Ranks in order whose own servers serve; None: one in between does not, or is not reached."""
        with ThreadPoolExecutor(min(32, len(self._urls))) as pool:
            serves = list(pool.map(self._serves, self._urls))
        known = [each for each in serves if each is not None]
        count = sum(known)
        in_order = all(each is True for each in serves[:count])
        return count if count and in_order else None

    def _serves(self, url: str) -> bool | None:
        """None: nobody is there; False: retired, or closed."""
        found = self._page(url, _MODELS)
        return None if found is None else found[0] in _OPEN

    def _ranks_in_metrics(self) -> int | None:
        found = self._page(self._urls[0], "/metrics")
        if found is None or found[0] != _OK:
            return None
        shown = set()
        for name, labels, value in _SERIES.findall(found[1]):
            rank = _RANK.search(labels)
            if rank is None:
                continue
            shown.add(int(rank[1]))
            self._note(name, int(rank[1]), value)
        if shown != set(range(len(shown))) or not shown:
            return None
        return self._without_gone(len(shown))

    def _note(self, name: str, rank: int, value: str) -> None:
        """Remember which ranks still move."""
        try:
            figure = float(value)
        except ValueError:
            return
        if self._seen.get((name, rank), figure) != figure:
            self._moving[rank] += 1
        self._seen[name, rank] = figure

    def _without_gone(self, shown: int) -> int | None:
        """Ranks behind so many labels: all of them, or as many as the answer to a shrink told."""
        fewer = self._told or self._doubted
        if fewer is None or fewer >= shown:
            return shown
        if any(self._moving[rank] for rank in range(fewer, shown)):
            return shown
        if self._told is not None or all(self._moving[rank] >= _MOVES for rank in range(fewer)):
            return fewer
        return None

    def _client(self, url: str) -> httpx.Client:
        return self._connections.client(secure=url.startswith("https"))

    def _page(self, url: str, path: str) -> tuple[int, str] | None:
        """Status and text of a page of an API server; None: there was no answer."""
        return self._looked(ResizeCall(method="GET", url=f"{url.rstrip('/')}{path}", timeout_s=_LOOK_S))

    def _looked(self, call: ResizeCall) -> tuple[int, str] | None:
        """Status and text of an answer; None: there was none."""
        try:
            return self._sent(call)
        except (httpx.HTTPError, httpx.InvalidURL, Fault, OSError):
            return None

    def _sent(self, call: ResizeCall) -> tuple[int, str]:
        client = self._client(call.url)
        # A rank that does not listen is known at once; an answer may take minutes.
        timeout = httpx.Timeout(call.timeout_s, connect=min(10.0, call.timeout_s))
        with client.stream(call.method, call.url, json=call.body, timeout=timeout) as answer:
            body = b""
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    break
            return answer.status_code, body.decode("utf-8", "replace")


def _together(answers: Sequence[CallAnswer]) -> CallAnswer:
    """One answer of many ranks. A refusal of one while others took the call is no refusal."""
    verdicts = {answer.verdict for answer in answers}
    first = answers[0]
    if len(verdicts) == 1:
        return first
    counts = Counter(answer.verdict.value for answer in answers)
    said = ", ".join(f"{count} × {verdict}" for verdict, count in sorted(counts.items()))
    told = next((a.message for a in answers if a.verdict is not CallVerdict.DONE), "")
    return CallAnswer(verdict=CallVerdict.UNKNOWN, message=f"{said}: {told}"[:500])
