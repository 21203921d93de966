"""A proxy in front of the real API server that fails as a test says: it refuses, is slow, or loses the answer to what was done."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from tests.e2e.controller.background import Background, Listener, Request, answer, read_request
from tests.e2e.kube.control_plane import ControlPlane, openssl
from tests.loopback import free_port

__all__ = ["WRITES", "ApiProxy", "Failing", "Fails", "failing"]

WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_HOP: Final = 65_536


@dataclass(frozen=True, kw_only=True)
class Failing:
    """How a call fails.

    Attributes:
        status: what is answered, in place of asking; None: it is asked.
        headers: of that answer.
        slow_s: time before anything happens, s.
        loses: the call is carried out, and its answer lost.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    slow_s: float = 0.0
    loses: bool = False


Fails = Callable[[Request], Failing | None]
"""Says how a call fails; None: it does not."""


def failing(how: Failing, *methods: str, path: str = "", times: int = 10**9) -> Fails:
    """Calls with these methods and this piece in their path fail, so many of them; no method: all."""
    left = [times]

    def fails(asked: Request) -> Failing | None:
        if (methods and asked.method not in methods) or path not in asked.path or left[0] <= 0:
            return None
        left[0] -= 1
        return how

    return fails


class ApiProxy:
    """Listens as long as the block lasts.

    Args:
        plane: whose API server is behind it.
        background: where it lives.
        folder: for its certificate; empty.
    """

    def __init__(self, plane: ControlPlane, background: Background, folder: Path) -> None:
        self.fails: Fails = lambda _: None
        self.away = False
        """Connections are closed without a word."""
        self.calls: list[tuple[str, str, int]] = []
        """Method, path and status of what was asked, in the order of the answers; lost ones are among them."""
        self._plane = plane
        self._background = background
        self._folder = folder
        self._port = free_port()
        self._listener = Listener(self._serve)

    def __enter__(self) -> Self:
        subject = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=proxy")
        name = ("-addext", "subjectAltName=IP:127.0.0.1")
        openssl("req", *subject, *name, "-keyout", self._folder / "key", "-out", self._folder / "crt")
        self._background.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._background.run(self._listener.close())

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig of a user that leads through the proxy."""
        config = json.loads(self._plane.kubeconfig(user).read_text())
        where = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority": str(self._folder / "crt"),
        }
        config["clusters"][0]["cluster"] = where
        path = self._folder / f"kubeconfig-{user}"
        path.write_text(json.dumps(config))
        return path

    def writes(self, path: str = "") -> list[tuple[str, str, int]]:
        """Calls that write, with this piece in their path."""
        return [each for each in self.calls if each[0] in WRITES and path in each[1]]

    async def _open(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "crt", self._folder / "key")
        await self._listener.listen("127.0.0.1", self._port, tls=context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_request(reader)
        if asked is None or self.away:
            return
        fault = self.fails(asked) or Failing()
        await asyncio.sleep(fault.slow_s)
        if fault.status is None:
            await self._hand_on(asked, writer, loses=fault.loses)
        else:
            self.calls.append((asked.method, asked.path, fault.status))
            said = {"Content-Type": "application/json"} | dict(fault.headers)
            await answer(writer, fault.status, _refusal(fault.status), said)

    async def _hand_on(self, asked: Request, writer: asyncio.StreamWriter, *, loses: bool) -> None:
        """Carry a call to the API server and its answer back, watches too, piece by piece."""
        seen = False
        try:
            async with self._behind() as (back, forth):
                forth.write(_closing(asked.head) + asked.body)
                await forth.drain()
                while piece := await back.read(_HOP):
                    if not seen:
                        self.calls.append((asked.method, asked.path, int(piece.split(b" ", 2)[1])))
                        seen = True
                    if not loses:
                        writer.write(piece)
                        await writer.drain()
        except OSError:
            pass  # one of the two went away

    @asynccontextmanager
    async def _behind(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        host, port = self._plane.url.removeprefix("https://").split(":")
        trust = ssl.create_default_context(cafile=str(self._plane.folder / "pki" / "apiserver.crt"))
        reader, writer = await asyncio.open_connection(host, int(port), ssl=trust)
        try:
            yield reader, writer
        finally:
            writer.close()


def _closing(head: bytes) -> bytes:
    """The head of a request after whose answer the connection ends."""
    first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
    kept = [each for each in lines if not each.lower().startswith(b"connection:")]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


def _refusal(status: int) -> bytes:
    """As an API server words it."""
    reasons = {403: "Forbidden", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
    said = {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
        "reason": reasons.get(status, "InternalError"), "message": "as the test says",
    }  # fmt: skip
    return json.dumps(said).encode()
