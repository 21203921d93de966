"""Engines and routers read from their own ``/metrics`` pages, in parallel and no faster than allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic import Field

from models.ids import Name
from models.observation import Finding, FreshnessLimits, VariantObservation
from models.units import Count, PositiveCount, PositiveSeconds
from models.value import Value
from planner.clock import Clock
from planner.control.collectors.access import Credentials, Fault, Trouble, checked, shown_url
from planner.control.collectors.pages import Origin, PageBook
from planner.control.collectors.transport import Connections, Web
from planner.control.options import options_of
from planner.control.protocols import MetricsReading
from planner.errors import ConfigurationError
from planner.errors import Finding as InputFinding

if TYPE_CHECKING:
    import httpx

__all__ = ["Endpoint", "EndpointOptions", "EndpointSource", "source"]

_FRESH_S: Final = FreshnessLimits().fresh_s
Finder = Callable[[Sequence[VariantObservation]], Sequence["Endpoint"]]


class Endpoint(Value):
    """A page, and whose it is."""

    url: str = Field(description="address of the page; /metrics where it has no path")
    namespace: str = Field("", description="namespace of the pod; empty: unknown")
    pod: str = Field("", description="name of the pod; empty: unknown")
    cluster: str = Field("", description="empty: the only one there is")
    variant: str = Field("", description="name of its variant; empty: by pod or model")

    @property
    def origin(self) -> Origin:
        """Where its lines are from."""
        return Origin(
            urlsplit(self.url).netloc.rpartition("@")[2], self.namespace, self.pod, self.cluster, self.variant
        )


class EndpointOptions(Credentials):
    """How to read pages; credentials are shown to all of them. Inside a cluster pages are read over plain http."""

    allow_http: bool = Field(True, description="allow http to another machine, and credentials over it")
    endpoints: tuple[str | Endpoint, ...] = Field((), max_length=100_000, description="pages to read")
    most_bytes: Count = Field(16 * 2**20, description="longest page, bytes")
    parallel: PositiveCount = Field(16, le=256, description="pages read at once")
    per_second: float = Field(500.0, gt=0, le=1e5, description="pages begun per second at most")
    within_s: PositiveSeconds = Field(
        10.0, description="time for one reading, s; pages whose turn does not come are first in the next"
    )
    retention_s: PositiveSeconds = Field(
        600.0, le=86_400, description="period over which arrived and completed requests are counted, s"
    )
    pools: Mapping[str, Name] = Field({}, description="namespace by InferencePool")


@dataclass(slots=True)
class _Pace:
    """When the next page may begin."""

    clock: Clock
    gap_s: float
    lock: Lock
    next_s: float

    def wait(self, end_s: float) -> bool:
        """Wait for a turn; False when there is none before ``end_s``."""
        with self.lock:
            now_s = self.clock.monotonic_s()
            turn_s = max(now_s, self.next_s)
            if turn_s > end_s:
                return False
            self.next_s = turn_s + self.gap_s
        self.clock.sleep(turn_s - now_s)
        return True


class EndpointSource:
    """Reads pages, and makes maxima and rates of what they say over time.

    Args:
        options: how.
        clock: for waits and times.
        finder: which pages to read, by what is served; None: those of the options.
        transport: in place of the network, for tests.
    """

    def __init__(
        self,
        options: EndpointOptions,
        clock: Clock,
        *,
        finder: Finder | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.options = options
        self._clock = clock
        self._fixed = tuple(_endpoint(each) for each in options.endpoints)
        self._finder = finder
        self._connections = Connections(options, most=options.parallel, transport=transport)
        self._webs: dict[str, Web] = {}
        self._book = PageBook(retention_s=options.retention_s, pools=options.pools)

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """See :class:`planner.control.protocols.MetricsSource`. Rates need two readings.

        Where there is no time for all pages, those go first that have waited longest, and the reading is complete as
        long as none of the others is too old.
        """
        endpoints = self._fixed if self._finder is None else tuple(self._finder(variants))
        self._forget_all_but(endpoints)
        begun_s = self._clock.monotonic_s()
        waited = sorted(endpoints, key=lambda each: self._book.last_s(each.origin) or 0.0)
        findings: list[Finding] = []
        late: list[Endpoint] = []
        for endpoint, answer in zip(waited, self._pages(waited), strict=True):
            if answer is None:
                late.append(endpoint)
            elif isinstance(answer, Fault):
                findings.append(_unread(endpoint, answer))
            else:
                text, read_s = answer
                self._book.take(endpoint.origin, text, now_s + read_s - begun_s)
        # Pages are as old as they are when the last one has come.
        ended_s = now_s + self._clock.monotonic_s() - begun_s
        old = [each for each in late if ended_s - (self._book.last_s(each.origin) or 0.0) >= _FRESH_S]
        if old:
            findings.append(_too_late(len(old), len(endpoints), self.options))
        return self._book.reading(variants, ended_s, findings=findings, complete=not findings)

    def _pages(self, endpoints: Sequence[Endpoint]) -> Iterator[tuple[str, float] | Fault | None]:
        """Each page and when it came (monotonic, s); None where its turn did not come in time."""
        begun_s = self._clock.monotonic_s()
        end_s = begun_s + self.options.within_s
        pace = _Pace(self._clock, 1.0 / self.options.per_second, Lock(), begun_s)

        def one(endpoint: Endpoint) -> tuple[str, float] | Fault | None:
            if not pace.wait(end_s):
                return None
            try:
                body = self._web(endpoint).get("", end_s=end_s)
            except Fault as fault:
                return fault
            except ValueError:
                where = shown_url(endpoint.url)[:200]
                return Fault(Trouble.REFUSED, f"{where} is no address that we may read")
            return body.decode("utf-8", "replace"), self._clock.monotonic_s()

        with ThreadPoolExecutor(min(self.options.parallel, max(1, len(endpoints)))) as pool:
            yield from pool.map(one, endpoints)

    def close(self) -> None:
        """Let go of the connections."""
        self._connections.close()

    def _web(self, endpoint: Endpoint) -> Web:
        web = self._webs.get(endpoint.url)
        if web is None:
            access = self.options.at(_with_path(endpoint.url))
            web = self._webs[endpoint.url] = Web(access, self._clock, self._connections)
        return web

    def _forget_all_but(self, endpoints: Sequence[Endpoint]) -> None:
        """Pages that are not to be read any more are those of engines that were removed."""
        kept = {each.origin for each in endpoints}
        for origin in self._book.origins:
            if origin not in kept:
                self._book.forget(origin)
        urls = {each.url for each in endpoints}
        for url in [url for url in self._webs if url not in urls]:
            del self._webs[url]


def _unread(endpoint: Endpoint, fault: Fault) -> Finding:
    remedies = {
        Trouble.UNREACHABLE: "another port, an engine that is starting or ending, or a network policy",
        Trouble.REFUSED: "another port or path: engines answer at /metrics",
        Trouble.DENIED: "the engine asks for a key: give a token",
        Trouble.TIMEOUT: "the engine is overloaded, or the port swallows what is sent to it",
    }
    return Finding(
        subject=f"page of {endpoint.pod or endpoint.origin.instance}",
        problem=str(fault),
        remedy=remedies.get(fault.trouble, "its last page is used until it is too old"),
    )


def _too_late(late: int, of: int, options: EndpointOptions) -> Finding:
    return Finding(
        subject="pages",
        problem=f"{late} of {of} pages were not read for {_FRESH_S:g} s: no time was left within {options.within_s:g} s",
        remedy="allow more at once (parallel, per_second, within_s), or let a Prometheus gather them",
    )


def _endpoint(given: str | Endpoint) -> Endpoint:
    if isinstance(given, Endpoint):
        return given
    return Endpoint(url=given if "://" in given else f"http://{given}")


def _with_path(url: str) -> str:
    return url if urlsplit(url).path not in {"", "/"} else f"{url.rstrip('/')}/metrics"


def source(options: Mapping[str, Any], clock: Clock) -> EndpointSource:
    """Make the source of these options.

    Raises:
        ConfigurationError: lists everything that is wrong with them.
    """
    read = options_of(EndpointOptions, "endpoints", options)
    wrong = []
    for index, each in enumerate(read.endpoints):
        url = _endpoint(each).url
        try:
            read.at(url)
        except ValueError:
            path, found = f"endpoints.endpoints[{index}]", f"{shown_url(url)[:200]!r}"
            allowed = "HOST:PORT, or http(s)://HOST[:PORT][/PATH] (http only with allow_http)"
            wrong.append(InputFinding("", None, path, found, allowed))
    if wrong:
        raise ConfigurationError.from_findings(wrong)
    checked(read)
    return EndpointSource(read, clock)
