"""HTTP to others, with limits of time and size and with retries. What fails is a fault that shows no secret."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from threading import Lock
from typing import Final

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception

from planner.clock import Clock
from planner.control.calling import asked_wait_s, jittered, tls_reason
from planner.control.collectors.access import (
    Access,
    Credentials,
    Fault,
    Retries,
    Trouble,
    shown_url,
    stamps_of,
    token_of,
    trust_of,
)

__all__ = ["Connections", "Web"]

_BUSY: Final = 429
_SERVER: Final = 500
_RETIRED: Final = 2
"""Clients with former certificates that are kept until calls on them have ended."""
_POST_REFUSED: Final = (405, 501)
_PASSING: Final = frozenset({Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.BUSY})
"""Troubles that may be gone in a moment."""


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
        self._clients: dict[bool, tuple[httpx.Client, tuple[int, ...]]] = {}
        self._retired: deque[httpx.Client] = deque()

    def client(self, *, secure: bool) -> httpx.Client:
        """The client for https, or for http, which needs no certificates: reading them takes longer than a call.

        Certificates that were renewed are read again.

        Raises:
            Fault: certificates cannot be read.
        """
        with self._lock:
            stamps = stamps_of(self._credentials) if secure else ()
            client, made_of = self._clients.get(secure, (None, ()))
            if client is None or made_of != stamps:
                if client is not None:
                    # Calls of other threads may still be under way on it, though not on those before.
                    self._retired.append(client)
                    while len(self._retired) > _RETIRED:
                        self._retired.popleft().close()
                client = self._opened(secure=secure)
                self._clients[secure] = (client, stamps)
            return client

    def _opened(self, *, secure: bool) -> httpx.Client:
        return httpx.Client(
            verify=trust_of(self._credentials) if secure else False,
            transport=self._transport,
            follow_redirects=False,
            # Proxies and passwords of the user's environment are not ours to hand on.
            trust_env=False,
            limits=httpx.Limits(max_connections=self._most),
        )

    def close(self) -> None:
        """Let go of them."""
        with self._lock:
            for client in (*self._retired, *(client for client, _ in self._clients.values())):
                client.close()
            self._retired.clear()
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
        token = token_of(self.access)
        return (said.replace(token, "…") if token else said)[:300]

    def _headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity", "User-Agent": "fleetplan"}
        token = token_of(self.access)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers


class _Waits:
    """Doubling waits with jitter, or what the server asks for."""

    def __init__(self, rules: Retries) -> None:
        self._rules = rules

    def __call__(self, retry_state: RetryCallState) -> float:
        outcome = retry_state.outcome
        fault = outcome.exception() if outcome is not None else None
        wait_s = self._rules.first_s * 2.0 ** (retry_state.attempt_number - 1)
        wait_s = jittered(wait_s, self._rules.jitter)
        return max(wait_s, fault.after_s or 0.0) if isinstance(fault, Fault) else wait_s


def _connect_fault(where: str, cause: httpx.ConnectError) -> Fault:
    why = tls_reason(cause)
    if why is not None:
        return Fault(Trouble.TLS, f"{where}: TLS failed: {why}")
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
        raise Fault(
            Trouble.BUSY, message, status=status, after_s=asked_wait_s(answer.headers.get("Retry-After"))
        )
    if answer.is_redirect:
        raise Fault(Trouble.REFUSED, f"{message}: it leads elsewhere; name that address", status=status)
    raise Fault(Trouble.REFUSED, message, status=status)
