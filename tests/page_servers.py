"""Small HTTP servers for tests: pages that may change, faults on demand, and a real Prometheus that scrapes them."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from planner.clock import SystemClock
from tests.loopback import free_port

__all__ = ["Answer", "Served", "a_prometheus", "an_engine_page", "page_of", "served"]

Answer = tuple[int, dict[str, str], bytes]
TEXT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


class Served:
    """A server whose answers a test chooses: by path, or by a function of path, headers and body."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.answer: Callable[[str, dict[str, str], bytes], Answer | None] | None = None
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.port = 0
        self.drip_s: float | None = None
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def _respond(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = dict(handler.headers.items())
        self.asked.append((handler.command, handler.path, headers, body))
        said = self.answer(handler.path, headers, body) if self.answer is not None else None
        if said is None:
            page = self.pages.get(handler.path.partition("?")[0])
            said = (404, {}, b"not here") if page is None else (200, TEXT, page.encode())
        status, more, content = said
        try:
            handler.send_response(status)
            for name, value in ({"Content-Length": str(len(content))} | more).items():
                handler.send_header(name, value)
            handler.end_headers()
            for piece in (
                [content] if self.drip_s is None else [content[at : at + 1] for at in range(len(content))]
            ):
                handler.wfile.write(piece)
                SystemClock().sleep(self.drip_s or 0.0)
        except OSError:
            handler.close_connection = True


@contextmanager
def served(context: ssl.SSLContext | None = None) -> Iterator[Served]:
    """A server on a free loopback port, over TLS where a context is given."""
    one = Served()

    class Handler(BaseHTTPRequestHandler):
        timeout = 20

        def do_GET(self) -> None:
            one._respond(self)

        do_POST = do_GET  # noqa: N815 - named by the standard library

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        one.scheme = "https"
    one.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def a_prometheus(
    folder: Path, scrapes: Sequence[dict[str, Any]], *, targets: int, every: str = "500ms"
) -> Iterator[str]:
    """A real Prometheus on a free loopback port; its address, once it has looked at so many targets."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("prometheus is not installed (apt-get install prometheus)")
    config = {"global": {"scrape_interval": every, "scrape_timeout": every}, "scrape_configs": list(scrapes)}
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    port = free_port()
    command = [
        binary, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--web.enable-lifecycle", "--log.level=error",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _until_scraped(url, process, targets)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _until_scraped(url: str, process: subprocess.Popen[bytes], targets: int) -> None:
    """Prometheus looks for targets every five seconds, so the first scrape is not before that."""
    for _ in range(300):
        if process.poll() is not None:
            raise AssertionError(f"prometheus ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/api/v1/query?query=count(up)", timeout=1) as answer:  # noqa: S310 - loopback
                found = json.load(answer)["data"]["result"]
        except OSError:
            found = []
        if found and int(found[0]["value"][1]) >= targets:
            return
        SystemClock().sleep(0.1)
    raise AssertionError(f"prometheus did not look at {targets} targets within 30 s")


def page_of(values: dict[str, float], **labels: str) -> str:
    """A page; names may have labels of their own: ``vllm:x{engine="1"}``."""
    shared = ",".join(f'{name}="{value}"' for name, value in labels.items())
    lines = []
    for name, value in values.items():
        bare, _, own = name.partition("{")
        both = ",".join(part for part in (own.rstrip("}"), shared) if part)
        lines.append(f"{bare}{{{both}}} {value}" if both else f"{bare} {value}")
    return "\n".join(lines) + "\n"


def an_engine_page(*, model: str = "llama", at: float = 1.0, engine: str = "0", **more: float) -> str:
    """A page of vLLM V1 whose counters grew for ``at`` units: 10 requests a unit, of 100 and 20 tokens."""
    values: dict[str, float] = {
        "vllm:num_requests_running": 3,
        "vllm:num_requests_waiting": 2,
        "vllm:kv_cache_usage_perc": 0.5,
        "vllm:request_prompt_tokens_sum": 1000 * at,
        "vllm:request_prompt_tokens_count": 10 * at,
        "vllm:request_generation_tokens_sum": 200 * at,
        "vllm:request_generation_tokens_count": 10 * at,
        "vllm:generation_tokens_total": 200 * at,
        'vllm:request_success_total{finished_reason="stop"}': 9 * at,
        'vllm:request_success_total{finished_reason="length"}': 1 * at,
        "vllm:prefix_cache_hits_total": 250 * at,
        "vllm:prefix_cache_queries_total": 1000 * at,
        "vllm:time_to_first_token_seconds_sum": 2 * at,
        "vllm:time_to_first_token_seconds_count": 10 * at,
        "vllm:inter_token_latency_seconds_sum": 1.9 * at,
        "vllm:inter_token_latency_seconds_count": 190 * at,
    } | {f"vllm:{name}": value for name, value in more.items()}
    page = page_of(values, model_name=model, engine=engine)
    return page + f'vllm:cache_config_info{{engine="{engine}",num_gpu_blocks="1000",block_size="16"}} 1\n'
