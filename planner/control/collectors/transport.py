"""HTTP to others, with limits: TLS, tokens, time, size and retries. What fails says why and never shows a secret."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import Field, SecretStr, field_validator, model_validator
from tenacity import RetryCallState, Retrying, retry_if_exception

from models.units import Count, PositiveCount, PositiveSeconds
from models.value import Value
from planner.clock import Clock
from planner.errors import ConfigurationError

__all__ = [
    "Access",
    "Connections",
    "Credentials",
    "Fault",
    "Retries",
    "Trouble",
    "Web",
    "checked",
    "shown_url",
]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_SECRET_BYTES: Final = 65_536
_BUSY: Final = 429
_LONGEST_WAIT: Final = 5
"""Digits of the seconds that a server may ask us to wait."""
_SERVER: Final = 500
_POST_REFUSED: Final = (405, 501)


class Trouble(StrEnum):
    """Why a call failed."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    DENIED = "denied"
    REFUSED = "refused"
    BUSY = "busy"
    TOO_LARGE = "too large"
    GARBLED = "garbled"


_PASSING: Final = frozenset({Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.BUSY})
"""Troubles that may be gone in a moment."""


class Fault(Exception):  # noqa: N818 - a fact about a call, turned into a finding; never leaves the collectors
    """A call that failed.

    Args:
        trouble: why.
        message: one sentence without secrets.
        status: of the answer; None: there was none.
        after_s: seconds that the server asks us to wait; None: it does not say.
    """

    def __init__(
        self, trouble: Trouble, message: str, *, status: int | None = None, after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.trouble, self.status, self.after_s = trouble, status, after_s


class Retries(Value):
    """How often a call is tried, and how long is waited in between; defaults are those of llm-d's autoscaler."""

    first_s: PositiveSeconds = Field(
        0.5, description="wait before the second try, s; doubled for each further one"
    )
    tries: PositiveCount = Field(5, le=20, description="tries in all")
    jitter: float = Field(0.1, ge=0, le=1, description="share by which a wait is longer at random")


class Credentials(Value):
    """How servers let us in, and what is asked of their answers."""

    bearer_token: SecretStr | None = Field(None, description="token; better in a file, which may be renewed")
    token_file: Path | None = Field(None, description="file with the token, read again for every call")
    ca_file: Path | None = Field(None, description="certificates to trust (PEM); None: those of the system")
    client_cert: Path | None = Field(None, description="our certificate (PEM)")
    client_key: Path | None = Field(None, description="its key (PEM); None: in the file of the certificate")
    server_name: str | None = Field(
        None, description="name in the server's certificate, where it is not the host"
    )
    insecure_skip_verify: bool = Field(False, description="trust any certificate; for trials alone")
    allow_http: bool = Field(False, description="allow http to another machine, and credentials over it")
    timeout_s: PositiveSeconds = Field(10.0, le=600, description="longest time of one call, s")
    most_bytes: Count = Field(256 * 2**20, description="longest answer, bytes")
    retries: Retries = Field(Retries(), description="of calls that fail for a moment")

    @model_validator(mode="after")
    def _has_one_token(self) -> Self:
        if self.bearer_token is not None and self.token_file is not None:
            raise ValueError("bearer_token and token_file; allowed: one of them")
        return self

    def at(self, url: str) -> Access:
        """Access to one server.

        Raises:
            pydantic.ValidationError: that is no address, or one that would show what we send.
        """
        return Access(url=url, **{name: getattr(self, name) for name in Credentials.model_fields})


class Access(Credentials):
    """Where a server is and how it lets us in."""

    url: str = Field(description="address, e.g. https://prometheus.monitoring:9090")

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise ValueError("no address; allowed: http://HOST[:PORT] or https://HOST[:PORT]")
        if "@" in parts.netloc:
            raise ValueError(
                "a user in the address, which messages would show; allowed: a token, a token file or a certificate"
            )
        return url.rstrip("/")

    @model_validator(mode="after")
    def _keeps_secrets(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not self.allow_http:
            raise ValueError(
                "http to another machine, which shows everything to everybody on the way; allowed: https, or allow_http"
            )
        return self


def shown_url(url: str) -> str:
    """An address without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "an address that cannot be read"


class Connections:
    """Connections to servers that share credentials; opened when the first is needed, and shared by threads.

    Args:
        credentials: how servers let us in.
        most: connections at once.
        transport: in place of the network, for tests.
    """

    def __init__(
        self, credentials: Credentials, *, most: int = 16, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._credentials = credentials
        self._most = most
        self._transport = transport
        self._lock = Lock()
        self._clients: dict[bool, httpx.Client] = {}

    def client(self, *, secure: bool) -> httpx.Client:
        """The client for https, or for http, which needs no certificates: reading them takes longer than a call.

        Raises:
            Fault: certificates cannot be read.
        """
        with self._lock:
            client = self._clients.get(secure)
            if client is None:
                client = self._clients[secure] = httpx.Client(
                    verify=_trust(self._credentials) if secure else False,
                    transport=self._transport,
                    follow_redirects=False,
                    # Proxies and passwords of the user's environment are not ours to hand on.
                    trust_env=False,
                    limits=httpx.Limits(max_connections=self._most),
                )
            return client

    def close(self) -> None:
        """Let go of them."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


@dataclass(slots=True)
class Web:
    """Calls to one server.

    Args:
        access: where it is.
        clock: for waits and limits.
        connections: which calls use.
    """

    access: Access
    clock: Clock
    connections: Connections
    _by_get: bool = False

    def post(self, path: str, form: Mapping[str, str], *, end_s: float) -> bytes:
        """The answer to a form; asked with GET where the server takes no POST.

        Args:
            path: below the address of the server.
            form: its fields.
            end_s: when there must be an answer, by the clock's monotonic seconds.

        Raises:
            Fault: there was no answer that can be used, after all tries.
        """
        return self._tried("GET" if self._by_get else "POST", path, form, end_s)

    def get(self, path: str, query: Mapping[str, str] | None = None, *, end_s: float) -> bytes:
        """The answer to a question; arguments and errors as of :meth:`post`."""
        return self._tried("GET", path, query or {}, end_s)

    def _tried(self, method: str, path: str, fields: Mapping[str, str], end_s: float) -> bytes:
        rules = self.access.retries

        def is_over(state: RetryCallState) -> bool:
            wait_s = state.upcoming_sleep
            return state.attempt_number >= rules.tries or self.clock.monotonic_s() + wait_s > end_s

        retrying = Retrying(
            sleep=self.clock.sleep,
            stop=is_over,
            wait=_Waits(rules),
            retry=retry_if_exception(lambda fault: isinstance(fault, Fault) and fault.trouble in _PASSING),
            reraise=True,
        )
        try:
            return retrying(self._once, method, path, fields, end_s)
        except Fault as fault:
            # Read-only proxies know no POST: those that allow to read may still answer a GET.
            if method == "POST" and fault.status in _POST_REFUSED:
                self._by_get = True
                return self._tried("GET", path, fields, end_s)
            raise

    def _once(self, method: str, path: str, fields: Mapping[str, str], end_s: float) -> bytes:
        where = shown_url(self.access.url)
        limit_s = min(self.access.timeout_s, end_s - self.clock.monotonic_s())
        if limit_s <= 0:
            raise Fault(Trouble.TIMEOUT, f"no time was left to ask {where}")
        try:
            client = self.connections.client(secure=self.access.url.startswith("https"))
            request = client.build_request(
                method,
                f"{self.access.url}{path}",
                data=dict(fields) if method == "POST" else None,
                params=dict(fields) if method == "GET" else None,
                headers=self._headers(),
                timeout=limit_s,
                extensions={"sni_hostname": self.access.server_name} if self.access.server_name else None,
            )
            with closing(client.send(request, stream=True)) as answer:
                body = self._read(answer, where, limit_s)
                _judge(answer, self._without_secrets(body), where)
                return body
        except httpx.TimeoutException:
            fault = Fault(Trouble.TIMEOUT, f"{where} did not answer within {limit_s:.3g} s")
        except httpx.ConnectError as cause:
            fault = _connect_fault(where, cause)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            fault = Fault(Trouble.UNREACHABLE, f"{where} broke off in the middle of its answer")
        except httpx.DecodingError:
            fault = Fault(Trouble.GARBLED, f"{where} sent what cannot be unpacked")
        except (
            httpx.HTTPError,
            httpx.StreamError,
            httpx.InvalidURL,
            ssl.SSLError,
            OSError,
            UnicodeError,
        ) as cause:
            fault = Fault(Trouble.UNREACHABLE, f"{where} cannot be reached ({type(cause).__name__})")
        # Outside the handlers, so that no exception of httpx, which holds the request and its headers, goes along.
        raise fault

    def _read(self, answer: httpx.Response, where: str, limit_s: float) -> bytes:
        end_s = self.clock.monotonic_s() + limit_s
        pieces: list[bytes] = []
        size = 0
        for piece in answer.iter_bytes():
            size += len(piece)
            if size > self.access.most_bytes:
                raise Fault(Trouble.TOO_LARGE, f"{where} sent more than {self.access.most_bytes:,} bytes")
            if self.clock.monotonic_s() > end_s:
                raise Fault(Trouble.TIMEOUT, f"{where} did not end its answer within {limit_s:.3g} s")
            pieces.append(piece)
        return b"".join(pieces)

    def _without_secrets(self, body: bytes) -> str:
        """The beginning of an answer in one line; a server that repeats our token is not repeated."""
        said = " ".join(body[:2000].decode("utf-8", "replace").split())
        token = self._token()
        return (said.replace(token, "…") if token else said)[:300]

    def _headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity", "User-Agent": "fleetplan"}
        token = self._token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _token(self) -> str | None:
        if self.access.bearer_token is not None:
            return self.access.bearer_token.get_secret_value()
        if self.access.token_file is None:
            return None
        try:
            with self.access.token_file.open("rb") as file:
                token = file.read(_SECRET_BYTES).decode("ascii").strip()
        except (OSError, UnicodeError) as cause:
            token, why = "", getattr(cause, "strerror", None) or "no text"
        else:
            why = "empty"
        if not token or not token.isprintable():
            raise Fault(Trouble.DENIED, f"the token file {self.access.token_file} cannot be used: {why}")
        return token


class _Waits:
    """Doubling waits with jitter, or what the server asks for."""

    def __init__(self, rules: Retries) -> None:
        self._rules = rules

    def __call__(self, retry_state: RetryCallState) -> float:
        outcome = retry_state.outcome
        fault = outcome.exception() if outcome is not None else None
        wait_s = self._rules.first_s * 2.0 ** (retry_state.attempt_number - 1)
        # Chance of the machine: that many of us do not come back at once, and nothing that is decided rests on it.
        wait_s *= 1.0 + self._rules.jitter * int.from_bytes(os.urandom(2), "big") / 65_535
        return max(wait_s, fault.after_s or 0.0) if isinstance(fault, Fault) else wait_s


def _trust(access: Credentials) -> ssl.SSLContext:
    """What the server must show, and what we show it.

    Raises:
        Fault: a certificate cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=str(access.ca_file) if access.ca_file else None)
        if access.client_cert is not None:
            key = str(access.client_key) if access.client_key else None
            # A password would be asked for on the terminal, and nobody is there.
            context.load_cert_chain(str(access.client_cert), key, password=lambda: b"")
    except (OSError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) and cause.strerror else "no certificate in PEM"
        files = [str(file) for file in (access.ca_file, access.client_cert, access.client_key) if file]
        message = f"certificates cannot be read from {', '.join(files)}: {why}"
    else:
        if access.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
    raise Fault(Trouble.TLS, message)


def _connect_fault(where: str, cause: httpx.ConnectError) -> Fault:
    inner: BaseException | None = cause
    while inner is not None:
        if isinstance(inner, ssl.SSLError):
            why = getattr(inner, "verify_message", "") or inner.reason or "no TLS"
            return Fault(Trouble.TLS, f"{where}: TLS failed: {why}")
        inner = inner.__cause__ or inner.__context__
    return Fault(Trouble.UNREACHABLE, f"{where} cannot be reached: {cause}")


def _judge(answer: httpx.Response, said: str, where: str) -> None:
    """Raise a fault unless the answer is good."""
    status = answer.status_code
    if answer.is_success:
        return
    message = f"{where} answered {status}" + (f": {said}" if said else "")
    if status in {401, 403}:
        raise Fault(Trouble.DENIED, f"{message}; the token or certificate does not allow it", status=status)
    if status == _BUSY or (status >= _SERVER and status not in _POST_REFUSED):
        raise Fault(Trouble.BUSY, message, status=status, after_s=_seconds(answer.headers.get("Retry-After")))
    if answer.is_redirect:
        raise Fault(Trouble.REFUSED, f"{message}: it leads elsewhere; name that address", status=status)
    raise Fault(Trouble.REFUSED, message, status=status)


def _seconds(header: str | None) -> float | None:
    said = header is not None and header.isascii() and header.isdigit() and len(header) <= _LONGEST_WAIT
    return float(header) if said and header is not None else None


def checked(access: Credentials) -> None:
    """Refuse certificates that cannot be read, before the first call.

    Raises:
        ConfigurationError: says which file.
    """
    try:
        _trust(access)
    except Fault as fault:
        raise ConfigurationError(str(fault)) from None
