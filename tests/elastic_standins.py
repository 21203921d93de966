"""Stand-ins for elastic deployments over HTTP, faithful to what is known of vLLM, Dynamo and SGLang; times are short.

A resize is prepared while requests are served, then committed while all but health and status answer 503. Ranks that
leave are the highest. Each fault is one that was seen or follows from released code.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from planner.clock import SystemClock
from planner.control.resizing.http_engine import PROMPT

__all__ = ["FAULTS", "StandIn", "serving"]

FAULTS = (
    "400", "408", "500 before anything", "500 after the commit", "cut in prepare", "cut in commit", "hang",
    "failed prepare", "failed commit", "wrong size", "lost before it", "joiners lie", "503",
)  # fmt: skip
Answer = tuple[int, dict[str, Any]]

_CLOCK = SystemClock()
_OLD_RANKS = 4
"""Ranks that tell the truth where joiners lie."""
_ENVELOPE = {400: "Bad Request", 408: "Request Timeout", 500: "Internal Server Error"}


@dataclass
class StandIn:
    """One deployment.

    Attributes:
        dialect: ``internal`` (vLLM, one API server), ``external`` (one for each rank), ``dynamo`` or ``sglang``.
        size: ranks that serve.
        floor: smallest size, below which it answers 400.
        most: largest size.
        fault: what goes wrong with the next resize.
        prepare_s: of the preparation.
        commit_s: of the commit.
        rich: the status tells a phase (0.33), and ``/health`` answers while it commits.
    """

    dialect: str = "internal"
    size: int = 4
    floor: int = 2
    most: int = 64
    fault: str = ""
    prepare_s: float = 0.25
    commit_s: float = 0.15
    rich: bool = True
    orders: list[tuple[str, int]] = field(default_factory=list)
    phase: str = "idle"
    dead: bool = False
    blocked: bool = False
    labels: int = 0
    tokens: dict[int, int] = field(default_factory=dict)
    error: str | None = None
    urls: list[str] = field(default_factory=list)
    pending: int | None = None

    def __post_init__(self) -> None:
        self.labels = self.size
        self.lock = threading.Lock()
        self.held = threading.Lock()
        self.released = threading.Event()
        self.turns = itertools.count()

    def work(self) -> None:
        """Every live rank makes a token."""
        for rank in range(self.size):
            self.tokens[rank] = self.tokens.get(rank, 0) + 1

    # What the servers ask.

    def closed(self, rank: int, path: str) -> Answer | None:
        """The answer of the gate; None: it lets through."""
        exempt = (
            path in ("/health", "/is_scaling_elastic_ep") if self.rich else path == "/is_scaling_elastic_ep"
        )
        if self.dialect == "external" and rank >= self.size and path != "/health":
            return 503, {"error": "This data-parallel rank has been retired and is awaiting shutdown."}
        if (self.phase == "committing" or self.dead) and not exempt:
            return 503, {"error": "The model is currently scaling. Please try again later."}
        return None

    def resize(self, rank: int, wanted: int) -> Answer | None:
        """The answer to a resize call; None: the connection is cut without one."""
        self.orders.append((self.urls[rank], wanted))
        if self.fault == "lost before it":
            return None
        refused = self._refused(wanted)
        if refused is not None:
            return refused
        if self.dialect == "external":
            return self._with_others(wanted)
        with self.lock:
            return self._resized(wanted)

    def _refused(self, wanted: int) -> Answer | None:
        if self.fault == "503":
            return 503, {"error": "The model is currently scaling. Please try again later."}
        if self.fault == "400" or not self.floor <= wanted <= self.most:
            return _failed(400, f"cannot retain all model experts; minimum is {self.floor}")
        if self.fault == "408":
            return _failed(408, "Request drain timed out")
        return _failed(500, "Scale failed") if self.fault == "500 before anything" or self.blocked else None

    def _with_others(self, wanted: int) -> Answer | None:
        """Each old rank waits for the others: the work is done once, when the last of them was called."""
        old = self.size
        end_s = _CLOCK.monotonic_s() + 10
        while len({url for url, _ in self.orders}) < old and _CLOCK.monotonic_s() < end_s:
            _CLOCK.sleep(0.005)
        if len({url for url, _ in self.orders}) < old:
            return _failed(500, "Scale failed")
        with self.lock:
            if self.phase in ("idle",):
                self.answer = self._resized(wanted)
        return self.answer

    def _resized(self, wanted: int) -> Answer | None:
        if wanted == self.size and self.dialect != "external":
            return self._done(wanted)
        self.phase = "preparing"
        if self.fault == "hang":
            self.released.wait(20)
        if self.fault == "cut in prepare":
            threading.Thread(target=self._finish, args=(wanted,), daemon=True).start()
            return None
        _CLOCK.sleep(self.prepare_s)
        if self.fault == "failed prepare":
            self.blocked, self.phase, self.error = True, "failed", "a joiner ran out of memory"
            return _failed(500, "Scale failed")
        return self._commit(wanted)

    def _finish(self, wanted: int) -> None:
        _CLOCK.sleep(self.prepare_s)
        self._commit(wanted)

    def _commit(self, wanted: int) -> Answer | None:
        self.phase = "committing"
        if self.fault == "cut in commit":
            threading.Thread(target=self._switch, args=(wanted,), daemon=True).start()
            return None
        return self._switch(wanted)

    def _switch(self, wanted: int) -> Answer | None:
        _CLOCK.sleep(self.commit_s)
        if self.fault == "failed commit":
            self.dead, self.phase = True, "failed"
            return _failed(500, "Scale failed")
        real = wanted - 1 if self.fault == "wrong size" else wanted
        if real > self.size:
            self.labels, self.tokens = real, {}
        self.size = real
        self.phase = "completed" if self.dialect == "external" else "idle"
        if self.fault in ("500 after the commit", "wrong size"):
            return _failed(500, "Scale failed")
        return self._done(wanted)

    def _done(self, wanted: int) -> Answer:
        if self.dialect == "dynamo":
            return 200, {"status": "ok", "message": f"Scaled to {wanted}", "new_data_parallel_size": wanted}
        return 200, {"message": f"Scaled to {wanted} data parallel engines"}

    def dynamo(self, wanted: int) -> Answer | None:
        """Its worker answers with a body of its own, and a grow that fails restarts it."""
        if not self.held.acquire(blocking=False):
            return 200, {"status": "error", "message": "a scale operation is already in progress"}
        try:
            answer = self.resize(0, wanted)
        finally:
            self.held.release()
        if answer is None or answer[0] == 200:
            return answer
        self.dead = self.blocked = False
        self.phase = "idle"
        return answer[0], {"status": "error", "message": answer[1]["error"]["message"]}

    def sglang(self, wanted: int) -> Answer | None:
        """It answers at once and goes on by itself; it only grows."""
        self.orders.append((self.urls[0], wanted))
        if self.fault == "lost before it":
            return None
        if self.pending is not None or self.fault == "503":
            return 409, {"message": "a resize is pending"}
        if wanted <= self.size or self.fault == "400":
            return 400, {"message": "new_ep_size must be larger"}
        if self.fault in ("408", "500 before anything"):
            return 500, {"message": "boom"}
        old, self.pending = self.size, wanted

        def go_on() -> None:
            _CLOCK.sleep(self.prepare_s)
            if self.fault in ("failed prepare", "hang"):
                self.error = "a joiner never came"
            else:
                self.size = wanted - 1 if self.fault == "wrong size" else wanted
                self.phase = "serving_expanded"
            self.pending = None

        threading.Thread(target=go_on, daemon=True).start()
        return 200, {"message": "accepted", "old_ep_size": old, "new_ep_size": wanted}

    def status(self) -> dict[str, Any]:
        if self.dialect == "sglang":
            return {
                "is_scaling_elastic_ep": self.pending is not None,
                "effective_ep_size": self.size,
                "pending_ep_size": self.pending,
                "scale_phase": self.phase,
                "last_error": self.error,
            }
        scaling = self.phase == "committing" or self.dead
        if not self.rich:
            return {"is_scaling_elastic_ep": scaling}
        if self.dialect == "internal":
            return {
                "is_scaling_elastic_ep": scaling,
                "phase": "committing" if scaling else "idle",
                "error": None,
            }
        return {
            "is_scaling_elastic_ep": self.phase in ("preparing", "committing"),
            "phase": self.phase,
            "error": self.error,
        }

    def metrics(self) -> str:
        lines = ["# TYPE vllm:num_requests_running gauge"]
        for rank in range(self.labels):
            label = f'{{model_name="moe",engine="{rank}"}}'
            lines.append(f"vllm:num_requests_running{label} 0.0")
            lines.append(f"vllm:generation_tokens_total{label} {self.tokens.get(rank, 0)}.0")
        return "\n".join(lines) + "\n"

    def says(self, rank: int) -> str:
        """The answer of a rank; with one API server each question goes to the next one."""
        if self.dialect != "external":
            rank = next(self.turns) % self.size
        return " Rome." if self.fault == "joiners lie" and rank >= _OLD_RANKS else " Paris."


def _failed(status: int, message: str) -> Answer:
    return status, {"error": {"message": message, "type": _ENVELOPE[status], "code": status}}


@contextmanager
def serving(stand_in: StandIn, *, most: int = 8) -> Iterator[StandIn]:
    """The stand-in on ports of the loopback interface; with one API server for each rank on ``most`` of them."""
    count = most if stand_in.dialect == "external" else 1
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(stand_in, rank)) for rank in range(count)]
    stand_in.urls = [f"http://127.0.0.1:{server.server_address[1]}" for server in servers]
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield stand_in
    finally:
        stand_in.released.set()
        for server in servers:
            server.shutdown()
            server.server_close()


def _routed(stand_in: StandIn, rank: int, path: str, asked: dict[str, Any]) -> Answer | None:
    """The answer of one path; 404 where this dialect has none of it."""
    kind = stand_in.dialect
    vllm = kind in ("internal", "external")
    ways: dict[str, tuple[bool, Callable[[], Answer | None]]] = {
        "/scale_elastic_ep": (
            kind != "dynamo",
            lambda: (
                stand_in.resize(rank, asked["new_data_parallel_size"])
                if vllm
                else stand_in.sglang(asked["new_ep_size"])
            ),
        ),
        "/engine/control/scale_elastic_ep": (
            kind == "dynamo",
            lambda: stand_in.dynamo(asked["new_data_parallel_size"]),
        ),
        "/engine/control/ep_capacity": (
            kind == "dynamo",
            lambda: (200, {"data_parallel_size": stand_in.size, "tensor_parallel_size": 1}),
        ),
        "/is_scaling_elastic_ep": (kind != "dynamo", lambda: (200, stand_in.status())),
        "/health": (True, lambda: (200, {})),
        "/v1/models": (True, lambda: (200, {})),
        "/v1/completions": (
            asked.get("prompt") == PROMPT,
            lambda: (200, {"choices": [{"text": stand_in.says(rank)}]}),
        ),
    }
    known, way = ways.get(path, (False, lambda: None))
    return way() if known else (404, {"error": {"message": "not found", "type": "Not Found", "code": 404}})


def _handler(stand_in: StandIn, rank: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _answer(self, body: bytes) -> None:
            answer = stand_in.closed(rank, self.path)
            if answer is None and self.path == "/metrics":
                self._write(200, stand_in.metrics().encode(), "text/plain")
                return
            answer = answer or _routed(stand_in, rank, self.path, json.loads(body) if body else {})
            if answer is None:
                self.close_connection = True
                self.connection.close()
            else:
                self._write(answer[0], json.dumps(answer[1]).encode(), "application/json")

        def _write(self, status: int, body: bytes, kind: str) -> None:
            with suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

    return Handler
