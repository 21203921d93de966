"""HTTP of the receiver of pushed pages: who may push, how much, and for how long."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import Any, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

from planner.control.collectors.pages import Origin
from planner.errors import TemporaryError

__all__ = ["BUSY", "CUT", "DENIED", "LARGE", "MANY", "PATH", "Receiver", "ReceivingServer", "listen"]

DENIED: Final = "no token, or another one"
LARGE: Final = "too large"
MANY: Final = "too many engines"
PATH: Final = "another path"
CUT: Final = "cut off"
BUSY: Final = "too many at once"

_LOOPBACK: Final = "127.0.0.1"
_KEYS: Final = {"instance", "namespace", "pod", "cluster", "variant", "job"}
_SHORTEST_PATH: Final = 3
"""``metrics``, a key and a value."""
_LONGEST_PART: Final = 253
_LONGEST_LENGTH: Final = 12
"""Digits of a length: no page is a terabyte."""


class Receiver(Protocol):
    """Who takes what is pushed."""

    @property
    def most_bytes(self) -> int:
        """Longest page."""

    @property
    def timeout_s(self) -> float:
        """Longest time of a push, s."""

    @property
    def at_once(self) -> int:
        """Pushes taken at once."""

    def monotonic_s(self) -> float:
        """Seconds since some moment."""

    def admits(self, header: str | None) -> bool:
        """Whether a push shows the token."""

    def refuse(self, why: str) -> None:
        """Count a push that was refused."""

    def take(self, origin: Origin, text: str) -> bool:
        """Note a page; False where too many engines push."""

    def forget(self, origin: Origin) -> None:
        """Drop an engine that says it is gone."""


class ReceivingServer(ThreadingHTTPServer):
    """Listens on the loopback address, to a few at once and to nobody for long.

    Args:
        port: 0: any that is free.
        receiver: who takes what comes.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, receiver: Receiver) -> None:
        self.receiver = receiver
        self._open: dict[socket, float] = {}
        super().__init__((_LOOPBACK, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """Serve a connection in a thread of its own; one too many is closed at once."""
        if len(self._open) >= self.receiver.at_once:
            self.receiver.refuse(BUSY)
            self.shutdown_request(request)
            return
        self._open[request] = self.receiver.monotonic_s() + self.receiver.timeout_s
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """End a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut connections whose time is over, however slowly they drip."""
        now_s = self.receiver.monotonic_s()
        for request, end_s in list(self._open.items()):
            if now_s > end_s:
                with suppress(OSError):
                    request.shutdown(SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """Count what broke off; a traceback on the terminal of others helps nobody."""
        self.receiver.refuse(CUT)


def listen(port: int, receiver: Receiver) -> ReceivingServer:
    """Begin to listen, in a thread that ends with the server's ``shutdown``.

    Raises:
        TemporaryError: the port is taken.
    """
    try:
        server = ReceivingServer(port, receiver)
    except OSError as cause:
        raise TemporaryError(f"port {port} for pushed metrics: {cause.strerror}") from cause
    Thread(target=server.serve_forever, args=(0.05,), name="pushed metrics", daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    server_version = "fleetplan"
    sys_version = ""

    @property
    def _receiver(self) -> Receiver:
        return cast("ReceivingServer", self.server).receiver

    def setup(self) -> None:
        """Set the limit of every single read before the first one."""
        super().setup()
        self.connection.settimeout(self._receiver.timeout_s)

    def do_POST(self) -> None:
        """Take a page."""
        self._answer_once(push=True)

    def do_PUT(self) -> None:
        """Take a page."""
        self._answer_once(push=True)

    def do_DELETE(self) -> None:
        """Forget an engine."""
        self._answer_once(push=False)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a log line a push is more than the push."""

    def _answer_once(self, *, push: bool) -> None:
        self.close_connection = True
        status, why = self._judged(push=push)
        if why:
            self._receiver.refuse(why)
        self._answer(status)

    def _judged(self, *, push: bool) -> tuple[HTTPStatus, str]:
        """Do what is asked; the answer, and why it is a refusal (empty: it is none)."""
        if not self._receiver.admits(self.headers.get("Authorization")):
            return HTTPStatus.UNAUTHORIZED, DENIED
        origin = _origin(self.path)
        if origin is None:
            return HTTPStatus.NOT_FOUND, PATH
        if push:
            return self._pushed(origin)
        self._receiver.forget(origin)
        return HTTPStatus.OK, ""

    def _pushed(self, origin: Origin) -> tuple[HTTPStatus, str]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return HTTPStatus.LENGTH_REQUIRED, CUT
        if len(length) > _LONGEST_LENGTH or int(length) > self._receiver.most_bytes:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, LARGE
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return HTTPStatus.BAD_REQUEST, CUT
        if not self._receiver.take(origin, body.decode("utf-8", "replace")):
            return HTTPStatus.TOO_MANY_REQUESTS, MANY
        return HTTPStatus.OK, ""

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()


def _origin(path: str) -> Origin | None:
    """Whose page is pushed to a path; None: to none that is known."""
    parts = [unquote(part) for part in urlsplit(path).path.split("/")[1:]]
    if len(parts) < _SHORTEST_PATH or parts[0] != "metrics" or len(parts) % 2 == 0:
        return None
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    known = said.keys() <= _KEYS
    fits = all(0 < len(part) <= _LONGEST_PART and part.isprintable() for part in said.values())
    said.pop("job", None)
    instance = said.pop("instance", "") or said.get("pod", "")
    return Origin(instance, **said) if known and fits and instance else None
