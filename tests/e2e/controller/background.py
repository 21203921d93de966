"""One event loop in a thread, for servers and clients that live beside a test; and the little HTTP that they speak."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Any, Self, TypeVar

__all__ = ["TEXT", "Background", "Listener", "Request", "answer", "read_request"]

T = TypeVar("T")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

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


class Listener:
    """Serves each connection by a coroutine.

    Args:
        serve: is given both ends; the connection ends with it.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def listen(self, address: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._connected, address, port, ssl=tls)

    async def close(self) -> None:
        """Listen no more; connections that are open break off."""
        if self._server is not None:
            self._server.close()
        tasks, writers = list(self._open), list(self._open.values())
        for writer in writers:
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The loop itself holds tasks weakly.
        task = asyncio.create_task(self._served(reader, writer))
        self._open[task] = writer
        task.add_done_callback(lambda done: self._open.pop(done, None))

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        finally:
            writer.close()
