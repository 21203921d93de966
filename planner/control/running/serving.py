"""The controller's own server: /metrics, /healthz, /readyz and /status; it only reads, and takes nothing."""

from __future__ import annotations

import hmac
import ssl
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET6, SHUT_RDWR, socket
from threading import Thread
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qs, urlsplit

from models.controller import ServerSettings
from planner.clock import Clock
from planner.control.calling import tls_reason
from planner.control.running.metering import CONTENT_TYPE
from planner.errors import ConfigurationError, Finding, TemporaryError

__all__ = ["Served", "StatusServer", "serve"]

_AT_ONCE: Final = 32
_LONGEST_S: Final = 10.0
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_SECRET_BYTES: Final = 65_536
_SHORTEST_TOKEN: Final = 16


class Served(Protocol):
    """What can be asked."""

    def metrics(self, cluster: str | None) -> bytes:
        """Figures, in the text format; of one cluster, or of all."""
        ...

    def healthy(self) -> tuple[bool, str]:
        """Whether it is alive, and a word about it."""
        ...

    def ready(self) -> tuple[bool, str]:
        """Whether it does its work, and a word about it."""
        ...

    def status(self) -> str:
        """JSON: who leads, and what was decided last."""
        ...

    def refused(self, why: str) -> None:
        """A request was refused."""
        ...


class StatusServer(ThreadingHTTPServer):
    """Listens, to a few at once and to nobody for long.

    Args:
        settings: where, and who may ask.
        served: answers.
        clock: for limits.

    Raises:
        OSError: the port is taken, or the address is not ours.
        ConfigurationError: certificate, key or token cannot be used.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, settings: ServerSettings, served: Served, clock: Clock) -> None:
        self.served = served
        self.clock = clock
        self.token_file = settings.token_file
        if settings.token_file is not None:
            _token(settings.token_file)
        self._tls = _tls(settings)
        self._open: dict[socket, float] = {}
        if ":" in settings.host:
            self.address_family = AF_INET6
        super().__init__((settings.host, settings.port), _Handler)

    def get_request(self) -> tuple[Any, Any]:
        """The next connection; TLS shakes hands in the thread that serves it, so that nobody holds up the others."""
        connection, address = super().get_request()
        connection.settimeout(_LONGEST_S)
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """Serve a connection in a thread of its own; one too many is closed at once."""
        if len(self._open) >= _AT_ONCE:
            self.served.refused("too many at once")
            self.shutdown_request(request)
            return
        self._open[request] = self.clock.monotonic_s() + _LONGEST_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """End a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut connections whose time is over, however slowly they drip."""
        now_s = self.clock.monotonic_s()
        for request, end_s in list(self._open.items()):
            if now_s > end_s:
                with suppress(OSError):
                    request.shutdown(SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """Count what broke off; a traceback on the terminal of others helps nobody."""
        self.served.refused("cut off")

    def admits(self, header: str | None) -> bool:
        """Whether a request shows the token, read again each time since it may be renewed."""
        if self.token_file is None:
            return True
        try:
            token = _token(self.token_file)
        except ConfigurationError:
            return False
        shown = (header or "").encode("utf-8", "replace")
        return hmac.compare_digest(shown, b"Bearer " + token.encode())

    def stop(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()


def serve(settings: ServerSettings, served: Served, clock: Clock) -> StatusServer:
    """Begin to listen, in a thread that ends with the server's ``stop``.

    Raises:
        TemporaryError: the port is taken.
        ConfigurationError: address, certificate, key or token cannot be used; or a token would be shown to everybody.
    """
    _check_address(settings)
    try:
        server = StatusServer(settings, served, clock)
    except OSError as cause:
        raise TemporaryError(f"cannot listen on {settings.host}:{settings.port}: {cause.strerror}") from cause
    Thread(target=server.serve_forever, args=(0.2,), name="status server", daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "fleetplan"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer."""
        server = cast("StatusServer", self.server)
        parts = urlsplit(self.path)
        match parts.path.rstrip("/") or "/":
            case "/healthz":
                self._probe(*server.served.healthy())
            case "/readyz":
                self._probe(*server.served.ready())
            case "/metrics" | "/status" if not server.admits(self.headers.get("Authorization")):
                server.served.refused("no token, or another one")
                self._answer(HTTPStatus.UNAUTHORIZED, _TEXT, b"a bearer token is needed\n")
            case "/metrics":
                cluster = parse_qs(parts.query).get("cluster", [None])[0]
                self._answer(HTTPStatus.OK, CONTENT_TYPE, server.served.metrics(cluster))
            case "/status":
                self._answer(HTTPStatus.OK, _JSON, server.served.status().encode("utf-8", "replace"))
            case _:
                self._answer(HTTPStatus.NOT_FOUND, _TEXT, b"/metrics /healthz /readyz /status\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: probes would fill the log."""

    def _probe(self, good: bool, word: str) -> None:
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, _TEXT, f"{word}\n".encode("utf-8", "replace"))

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


def _check_address(settings: ServerSettings) -> None:
    """A token over plain HTTP on an address that others reach is one that everybody on the way can read."""
    if settings.token_file is None or settings.cert_file is not None or _is_loopback(settings.host):
        return
    found = f"a token on {settings.host} without TLS, which everybody on the way could read"
    raise ConfigurationError.from_findings(
        [Finding("", None, "server.token_file", found, "server.cert_file beside it, or the host 127.0.0.1")]
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    if settings.cert_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ssl.SSLError) as cause:
        found = f"a certificate or key that cannot be used ({tls_reason(cause) or getattr(cause, 'strerror', '')})"
        raise ConfigurationError.from_findings(
            [
                Finding(
                    str(settings.cert_file), None, "server.cert_file", found, "PEM files that belong together"
                )
            ]
        ) from None
    return context


def _token(file: Path) -> str:
    found = ""
    try:
        with file.open("rb") as opened:
            token = opened.read(_SECRET_BYTES).decode("ascii").strip()
    except (OSError, UnicodeError) as cause:
        token, found = "", f"that it cannot be read ({getattr(cause, 'strerror', None) or 'no ASCII text'})"
    if len(token) < _SHORTEST_TOKEN:
        raise ConfigurationError.from_findings(
            [
                Finding(
                    str(file), None, "server.token_file", found or "a token that is too short",
                    f"a file with {_SHORTEST_TOKEN} characters or more",
                )
            ]
        )  # fmt: skip
    return token
