"""Plays the endpoint picker, and those who ask it: requests over HTTP to engines, each of which is counted to its end."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tests.e2e.controller.background import TEXT, Background, Listener, answer, read_request
from tests.e2e.controller.engine_pages import line

__all__ = ["Clients", "Ending", "Endpoint", "Picker"]


@dataclass(frozen=True)
class Endpoint:
    """Where a pod that may be sent requests listens."""

    namespace: str
    pod: str
    address: str
    port: int


class Ending(StrEnum):
    """How a request ended."""

    DONE = "done"
    CUT = "cut"
    """An engine had taken it, and the answer broke off."""
    REFUSED = "refused"
    """An engine said no."""
    ABORTED = "aborted"
    """Whoever asked went away."""


class Picker:
    """Sends each request to the endpoint with the fewest, or holds it while there is none with room; tells so at /metrics.

    Args:
        model: that it serves.
        namespace: of the pods.
        endpoints: pods that may be sent requests now.
        at_most: requests that one endpoint is sent at once; more are held here (flow control).

    Attributes:
        only: pod that gets all of them, as one whose cache knows the prompts; empty: whichever has the fewest.
    """

    def __init__(
        self, model: str, namespace: str, endpoints: Callable[[], Sequence[Endpoint]], *, at_most: int = 1000
    ) -> None:
        self.model = model
        self.namespace = namespace
        self.at_most = at_most
        self.only = ""
        self._endpoints = endpoints
        self._held: deque[int] = deque()
        self._inside: Counter[Endpoint] = Counter()
        self._sent: Counter[Endpoint] = Counter()
        self._arrived = 0
        self._listener = Listener(self._tell)

    @property
    def queued(self) -> int:
        """Requests that it holds."""
        return len(self._held)

    async def ask(self, prompt: int, most: int) -> Ending:
        """Send one request, and say how it ended."""
        self._arrived += 1
        ticket = self._arrived
        self._held.append(ticket)
        while True:
            endpoint = await self._chosen(ticket)
            self._inside[endpoint] += 1
            self._sent[endpoint] += 1
            try:
                ending = await _asked(endpoint, self.model, prompt, most)
            finally:
                self._inside[endpoint] -= 1
            if ending is not None:
                return ending
            # It was not there any more, and so has seen nothing of the request: the next one gets it.
            self._held.appendleft(ticket)
            await asyncio.sleep(0.05)

    async def _chosen(self, ticket: int) -> Endpoint:
        try:
            while True:
                known = [each for each in self._endpoints() if self.only in {"", each.pod}]
                free = [each for each in known if self._inside[each] < self.at_most]
                if free and self._held[0] == ticket:
                    return min(free, key=lambda each: (self._inside[each], each.pod))
                await asyncio.sleep(0.02)
        finally:
            self._held.remove(ticket)

    async def serve(self, address: str, port: int) -> None:
        """Serve its page of metrics."""
        await self._listener.listen(address, port)

    async def close(self) -> None:
        """Serve no more."""
        await self._listener.close()

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await read_request(reader) is not None:
            await answer(writer, 200, self.page().encode(), TEXT)

    def page(self) -> str:
        """What /metrics shows, in the words of llm-d-router."""
        return "\n".join((*self._lines(), ""))

    def _lines(self) -> Iterable[str]:
        whose = {
            "fairness_id": "default",
            "model_name": self.model,
            "priority": "0",
            "target_model_name": self.model,
        }
        pool = {"inference_pool": f"{self.model}-pool"}
        yield line("llm_d_epp_flow_control_queue_size", len(self._held), whose | pool)
        yield line("llm_d_epp_request_total", self._arrived, whose)
        yield line("llm_d_epp_request_running", sum(self._inside.values()) + len(self._held), whose)
        for each, count in self._sent.items():
            to = {"endpoint_name": each.pod, "namespace": each.namespace, "port": str(each.port)}
            done = {"status": "success", "target_model_name": self.model}
            yield line("llm_d_epp_scheduler_attempts_total", count, to | done)


async def _asked(endpoint: Endpoint, model: str, prompt: int, most: int) -> Ending | None:
    """How one request to one engine ended; None: nobody listened there."""
    try:
        reader, writer = await asyncio.open_connection(endpoint.address, endpoint.port)
    except OSError:
        return None
    body = json.dumps({"model": model, "prompt": [7] * prompt, "max_tokens": most, "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: engine\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        said = await reader.read()
    except OSError:
        return Ending.CUT
    finally:
        writer.close()
    if said.endswith(b"data: [DONE]\n\n"):
        return Ending.DONE
    return Ending.REFUSED if said.startswith(b"HTTP/1.1 4") else Ending.CUT


@dataclass
class Clients:
    """People who ask, at a rate that a test changes; requests come at random moments, which are the same in each run.

    Attributes:
        picker: whom they ask.
        background: where they live.
        prompt: tokens of a question.
        most: tokens of an answer.
        rps: requests per second.
        at_once: requests that are always open, each followed by the next, beside those of ``rps``.
        endings: how requests ended.
    """

    picker: Picker
    background: Background
    prompt: int = 200
    most: int = 40
    rps: float = 0.0
    at_once: int = 0
    endings: Counter[Ending] = field(default_factory=Counter)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self) -> None:
        """Begin to ask at :attr:`rps`, until the background ends."""
        self.background.start(self._go())

    def abort(self) -> None:
        """All go away, and ask no more."""
        self.rps, self.at_once = 0.0, 0
        self.background.run(self._leave())

    @property
    def waiting(self) -> int:
        """Requests that have not ended."""
        return len(self._open)

    async def _go(self) -> None:
        chance = random.Random(7)  # noqa: S311 - arrivals, not secrets
        credit = 0.0
        while True:
            await asyncio.sleep(0.02)
            credit += self.rps * 0.02
            while (credit > 0 and self.rps > 0) or len(self._open) < self.at_once:
                credit -= chance.expovariate(1.0) if self.rps > 0 else 0.0
                task = asyncio.create_task(self._ask())
                self._open.add(task)
                task.add_done_callback(self._open.discard)

    async def _ask(self) -> None:
        try:
            self.endings[await self.picker.ask(self.prompt, self.most)] += 1
        except asyncio.CancelledError:
            self.endings[Ending.ABORTED] += 1
            raise

    async def _leave(self) -> None:
        going = list(self._open)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
