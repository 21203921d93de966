"""An engine that speaks vLLM's protocol: a real queue, a batch, a KV cache, completions that take time, and /metrics.

Requests wait until batch and cache have room for them; each step makes one token for each that runs, and takes longer the
more there are. A client that goes away is forgotten, unless the engine has the fault that it keeps it in its queue. SIGTERM
ends vLLM at once: whatever runs then is cut.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.clock import SystemClock
from tests.e2e.controller.background import TEXT, Listener, Request, answer, read_request
from tests.e2e.controller.engine_pages import Histogram, line, lines_of

__all__ = ["Engine", "EngineSize", "Work"]

_CLOCK = SystemClock()
_LENGTHS = (1.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_TTFT = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 40.0)
_ITL = (0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class EngineSize:
    """What an engine can do.

    Attributes:
        model: name that it serves.
        batch: requests at once.
        blocks: of its KV cache, of ``block_tokens`` tokens each.
        block_tokens: see ``blocks``.
        step_s: time of a step with nothing in the batch, s.
        per_request_s: what each running request adds to it, s.
        keeps_the_dead: requests whose client went away while they waited stay in its queue for ever.
    """

    model: str = "llama"
    batch: int = 8
    blocks: int = 128
    block_tokens: int = 16
    step_s: float = 0.04
    per_request_s: float = 0.001
    keeps_the_dead: bool = False


@dataclass(eq=False)
class Work:
    """One request in an engine."""

    prompt: int
    most: int
    arrived_s: float
    made: int = 0
    dead: bool = False
    tokens: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)
    """True for each token, False at the end."""


class Engine:
    """One engine on an address; it exists from :meth:`open` until :meth:`kill`."""

    def __init__(self, size: EngineSize) -> None:
        self.size = size
        self.running: list[Work] = []
        self.waiting: deque[Work] = deque()
        self._started_s = _CLOCK.unix_s()
        self._listener = Listener(self._serve)
        self._steps: asyncio.Task[None] | None = None
        self._work = asyncio.Event()
        self._counters = {"prompt_tokens_total": 0.0, "generation_tokens_total": 0.0, "num_preemptions_total": 0.0,
                          "prefix_cache_queries_total": 0.0, "prefix_cache_hits_total": 0.0}  # fmt: skip
        self._ended = {"stop": 0, "length": 0, "abort": 0}
        self._histograms = {
            "request_prompt_tokens": Histogram(_LENGTHS),
            "request_generation_tokens": Histogram(_LENGTHS),
            "time_to_first_token_seconds": Histogram(_TTFT),
            "inter_token_latency_seconds": Histogram(_ITL),
        }

    async def open(self, address: str, port: int) -> None:
        """Listen; from now on it serves."""
        self._steps = asyncio.create_task(self._run())
        await self._listener.listen(address, port)

    async def kill(self) -> None:
        """End it now: connections break off."""
        await self._listener.close()
        if self._steps is not None:
            self._steps.cancel()
            await asyncio.gather(self._steps, return_exceptions=True)

    @property
    def busy(self) -> int:
        """Requests that it holds for somebody."""
        return len(self.running) + sum(not each.dead for each in self.waiting)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_request(reader)
        if asked is None:
            return
        route = asked.method, asked.path.partition("?")[0]
        if route == ("GET", "/metrics"):
            await answer(writer, 200, self.page().encode(), TEXT)
        elif route == ("GET", "/health"):
            await answer(writer, 200, b"")
        elif route == ("POST", "/v1/completions"):
            await self._complete(asked, reader, writer)
        else:
            await answer(writer, 404, b"")

    async def _complete(
        self, asked: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        body = json.loads(asked.body)
        if body["model"] != self.size.model:
            return await answer(writer, 404, b'{"object":"error","message":"no such model"}')
        work = Work(len(body["prompt"]), body["max_tokens"], _CLOCK.monotonic_s())
        self.waiting.append(work)
        self._work.set()
        gone = asyncio.create_task(reader.read())
        try:
            await self._stream(work, writer, gone)
        except OSError:
            pass  # the client went away: the same as if it had said so
        finally:
            gone.cancel()
            self._forget(work)

    async def _stream(self, work: Work, writer: asyncio.StreamWriter, gone: asyncio.Task[bytes]) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        more = True
        while more:
            token = asyncio.create_task(work.tokens.get())
            try:
                await asyncio.wait({token, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                token.cancel()
            if gone.done():
                return
            more = token.result()
            text = 'data: {"choices":[{"index":0,"text":" a"}]}\n\n' if more else "data: [DONE]\n\n"
            writer.write((head + text).encode())
            await writer.drain()
            head = ""

    def _forget(self, work: Work) -> None:
        """Drop what nobody waits for any more."""
        work.dead = True
        if work in self.running:
            self.running.remove(work)
            self._ended["abort"] += 1
        if work in self.waiting and not self.size.keeps_the_dead:
            self.waiting.remove(work)
            self._ended["abort"] += 1

    async def _run(self) -> None:
        while True:
            self._admit()
            if not self.running:
                self._work.clear()
                await self._work.wait()
                continue
            took_s = self.size.step_s + self.size.per_request_s * len(self.running)
            await asyncio.sleep(took_s)
            self._step(took_s)

    def _admit(self) -> None:
        for work in [each for each in self.waiting if not each.dead]:
            held = self._blocks_held() + self._blocks_of(work)
            if len(self.running) >= self.size.batch or (self.running and held > self.size.blocks):
                return
            self.waiting.remove(work)
            self.running.append(work)
            self._counters["prompt_tokens_total"] += work.prompt
            self._counters["prefix_cache_queries_total"] += work.prompt

    def _step(self, took_s: float) -> None:
        now_s = _CLOCK.monotonic_s()
        for work in list(self.running):
            if work.made == 0:
                self._histograms["time_to_first_token_seconds"].add(now_s - work.arrived_s)
            else:
                self._histograms["inter_token_latency_seconds"].add(took_s)
            work.made += 1
            self._counters["generation_tokens_total"] += 1
            work.tokens.put_nowait(True)
            if work.made >= work.most:
                self._finish(work)
        self._preempt()

    def _finish(self, work: Work) -> None:
        self.running.remove(work)
        self._ended["length"] += 1
        self._histograms["request_prompt_tokens"].add(work.prompt)
        self._histograms["request_generation_tokens"].add(work.made)
        work.tokens.put_nowait(False)

    def _preempt(self) -> None:
        """The youngest goes back to the queue while the cache is too small for all."""
        while self._blocks_held() > self.size.blocks and len(self.running) > 1:
            self.waiting.appendleft(self.running.pop())
            self._counters["num_preemptions_total"] += 1

    def _blocks_of(self, work: Work) -> int:
        return -(-(work.prompt + work.made) // self.size.block_tokens)

    def _blocks_held(self) -> int:
        return sum(map(self._blocks_of, self.running))

    def page(self) -> str:
        """What /metrics shows."""
        labels = {"engine": "0", "model_name": self.size.model}
        values = self._counters | {
            "num_requests_running": float(len(self.running)),
            "num_requests_waiting": float(len(self.waiting)),
            "kv_cache_usage_perc": min(1.0, self._blocks_held() / self.size.blocks),
        }
        return "\n".join((
            *lines_of("vllm:", values, self._histograms, labels),
            *self._info(labels),
            f"process_start_time_seconds {self._started_s}",
            "",
        ))  # fmt: skip

    def _info(self, labels: dict[str, str]) -> Iterable[str]:
        for reason, count in self._ended.items():
            yield line("vllm:request_success_total", count, labels | {"finished_reason": reason})
        sizes = {"block_size": str(self.size.block_tokens), "num_gpu_blocks": str(self.size.blocks)}
        yield line("vllm:cache_config_info", 1, {"engine": "0"} | sizes)
