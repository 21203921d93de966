"""One event loop in a thread, for servers and clients that live beside a test; and the little HTTP that they speak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Any, Self, TypeVar

__all__ = ["TEXT", "Background", "Request", "answer", "closing_writer", "read_request"]

T = TypeVar("T")

TEXT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
"""A page of metrics. OpenMetrics would change the names of vLLM."""


class Background:
    """An event loop in a thread, as long as the block lasts; what runs then is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._cancelled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T], *, within_s: float = 30.0) -> T:
        """What the work comes to; the caller waits."""
        return self.start(work).result(within_s)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin the work and do not wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _cancelled(self) -> None:
        others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()


@dataclass(frozen=True)
class Request:
    """A request as it came: the head as lines, and the body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    head: bytes


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None: the other side has gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length") or 0))
    except (asyncio.IncompleteReadError, OSError, ValueError):
        return None
    return Request(method, path, headers, body, head)


async def answer(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """A whole answer, after which the connection ends."""
    lines = {"Content-Length": str(len(body)), "Connection": "close"} | dict(headers or {})
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with suppress(OSError):
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()


@asynccontextmanager
async def closing_writer(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close a connection with the block, whatever became of it."""
    try:
        yield
    finally:
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()
