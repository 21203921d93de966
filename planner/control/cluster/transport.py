"""The way to a Kubernetes API: kubeconfig or service account, TLS and tokens are left to the ``kubernetes`` client."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlencode, urlsplit

from planner.clock import Clock
from planner.control.calling import tls_reason
from planner.control.cluster.faults import ClusterFault, Trouble

if TYPE_CHECKING:
    import urllib3

__all__ = ["Answer", "Call", "KubernetesTransport", "Transport", "refused"]

_PIECE: Final = 1 << 16
_LONGEST_LINE: Final = 16 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call.

    Attributes:
        method: ``GET``, ``POST``, ``PUT``, ``PATCH`` or ``DELETE``.
        path: of the API.
        query: its arguments.
        body: JSON text; None: none.
        content_type: of the body.
        accept: what may come back.
        timeout_s: longest time, s.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, headers in lower case, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Carries calls. Fakes are :class:`planner.control.cluster.memory.MemoryCluster` and whatever a test hands in."""

    def call(self, call: Call) -> Answer:
        """The answer, whatever its status.

        Raises:
            ClusterFault: there was none.
        """

    def stream(self, call: Call) -> Iterator[bytes]:
        """Lines of the answer as they come, as a watch sends them; ends when the server ends it.

        Raises:
            ClusterFault: there was no answer, a status that is not good, or it broke off.
        """


class KubernetesTransport:
    """Calls over the connections of the ``kubernetes`` client.

    Args:
        configuration: ``kubernetes.client.Configuration``, with address, certificates and tokens.
        clock: for the time that an answer may take.
        most_bytes: longest answer.
    """

    def __init__(
        self,
        configuration: Any,  # noqa: ANN401 - the client is untyped
        clock: Clock,
        *,
        most_bytes: int = 512 * 2**20,
    ) -> None:
        self._configuration = configuration
        self._clock = clock
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._pool: Any = None
        parts = urlsplit(str(configuration.host))
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def call(self, call: Call) -> Answer:
        """See :class:`Transport`."""
        end_s = self._clock.monotonic_s() + call.timeout_s
        with self._sent(call) as response:
            pieces: list[bytes] = []
            size = 0
            for piece in response.stream(_PIECE, decode_content=True):
                size += len(piece)
                if size > self._most_bytes:
                    raise ClusterFault(
                        Trouble.GARBLED, f"{self.where} sent more than {self._most_bytes:,} bytes"
                    )
                if self._clock.monotonic_s() > end_s:
                    raise ClusterFault(
                        Trouble.TIMEOUT, f"{self.where} did not end its answer within {call.timeout_s:.3g} s"
                    )
                pieces.append(piece)
            headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
            return Answer(int(response.status), headers, b"".join(pieces))

    def stream(self, call: Call) -> Iterator[bytes]:
        """See :class:`Transport`."""
        with self._sent(call) as response:
            if response.status != 200:  # noqa: PLR2004 - OK
                raise _StatusError(Answer(int(response.status), {}, response.read(_PIECE)))
            rest = b""
            # An answer is handed on line by line as it comes: waiting for a full piece would hold events back.
            for piece in response.stream(amt=None, decode_content=True):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (line for line in lines if line)
                if len(rest) > _LONGEST_LINE:
                    raise ClusterFault(Trouble.GARBLED, f"{self.where} sent a line without an end")

    @contextlib.contextmanager
    def _sent(self, call: Call) -> Iterator[urllib3.BaseHTTPResponse]:
        import urllib3

        where, response, fault = self.where, None, None
        try:
            response = self._connections().request(
                call.method,
                f"{str(self._configuration.host).rstrip('/')}{call.path}"
                + (f"?{urlencode(call.query)}" if call.query else ""),
                body=call.body,
                headers=self._headers(call),
                timeout=urllib3.Timeout(connect=min(5.0, call.timeout_s), read=call.timeout_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            yield response
        except urllib3.exceptions.NewConnectionError:
            # Older versions of urllib3 count it among the timeouts.
            fault = ClusterFault(Trouble.UNREACHABLE, f"{where} cannot be reached")
        except urllib3.exceptions.TimeoutError:
            fault = ClusterFault(Trouble.TIMEOUT, f"{where} did not answer within {call.timeout_s:.3g} s")
        except (urllib3.exceptions.SSLError, ssl.SSLError) as cause:
            fault = ClusterFault(Trouble.CREDENTIALS, f"{where}: TLS failed: {tls_reason(cause) or 'no TLS'}")
        except (urllib3.exceptions.HTTPError, OSError) as cause:
            fault = ClusterFault(
                Trouble.UNREACHABLE, f"{where} cannot be reached, or broke off ({type(cause).__name__})"
            )
        finally:
            if response is not None:
                _let_go(response)
        # Outside the handlers: what the client raised holds the request and its token.
        if fault is not None:
            raise fault

    def _connections(self) -> Any:  # noqa: ANN401 - the client is untyped
        with self._lock:
            if self._pool is None:
                from kubernetes.client.rest import RESTClientObject

                if not self._configuration.verify_ssl:
                    import urllib3

                    # Whoever wrote insecure-skip-tls-verify knows; a warning for every call helps nobody.
                    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
                try:
                    self._pool = RESTClientObject(self._configuration).pool_manager
                except (OSError, ValueError, ssl.SSLError) as cause:
                    why = type(cause).__name__
                    raise ClusterFault(
                        Trouble.CREDENTIALS, f"certificates for {self.where} cannot be read ({why})"
                    ) from None
            return self._pool

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {"Accept": call.accept, "User-Agent": "fleetplan"}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        try:
            # Reads a renewed service-account token, or asks a credential plug-in again.
            settings = self._configuration.auth_settings()
        except Exception as cause:
            why = type(cause).__name__
            raise ClusterFault(
                Trouble.CREDENTIALS, f"credentials for {self.where} cannot be renewed ({why})"
            ) from None
        for setting in settings.values():
            if setting.get("in") == "header" and setting.get("value"):
                headers[str(setting["key"])] = str(setting["value"])
        return headers


class _StatusError(ClusterFault):
    """A stream that was refused; the API makes a proper fault of its answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(
            Trouble.GARBLED, f"the stream was refused with {answer.status}", status=answer.status
        )
        self.answer = answer


def refused(fault: ClusterFault) -> Answer | None:
    """The answer with which a stream was refused; None: it broke off."""
    return fault.answer if isinstance(fault, _StatusError) else None


def _let_go(response: urllib3.BaseHTTPResponse) -> None:
    """Give the connection back if everything was read, else close it: what is left would be read as the next answer."""
    with contextlib.suppress(Exception):
        if getattr(response, "closed", True):
            response.release_conn()
        else:
            response.close()
