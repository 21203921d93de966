"""A receiver for engines that push: pages sent to a loopback port, with a token and limits."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from pydantic import Field, SecretStr, model_validator

from models.ids import Name
from models.observation import Finding, VariantObservation
from models.units import Count, PositiveCount, PositiveSeconds
from models.value import Value
from planner.clock import Clock
from planner.control.collectors.pages import Origin, PageBook
from planner.control.collectors.receiving import BUSY, CUT, DENIED, LARGE, MANY, PATH, ReceivingServer, listen
from planner.control.options import options_of
from planner.control.protocols import MetricsReading
from planner.errors import ConfigurationError
from planner.errors import Finding as InputFinding

__all__ = ["PushOptions", "PushSource", "source"]

_SHORTEST_TOKEN: Final = 16


class PushOptions(Value):
    """Where pages are received, and what they may be."""

    port: Count = Field(9091, le=65_535, description="port on the loopback address; 0: any that is free")
    token: SecretStr | None = Field(None, description="token that pushes must show; better in a file")
    token_file: Path | None = Field(None, description="file with that token")
    most_bytes: PositiveCount = Field(16 * 2**20, description="longest page, bytes")
    most_origins: PositiveCount = Field(10_000, description="engines that may push")
    at_once: PositiveCount = Field(
        16, le=256, description="pushes taken at once; more are told to come again"
    )
    timeout_s: PositiveSeconds = Field(10.0, description="longest time of one push, s")
    forget_s: PositiveSeconds = Field(900.0, description="an engine that is silent for so long is gone, s")
    retention_s: PositiveSeconds = Field(
        600.0, le=86_400, description="period over which arrived and completed requests are counted, s"
    )
    pools: Mapping[str, Name] = Field({}, description="namespace by InferencePool")

    @model_validator(mode="after")
    def _has_one_token(self) -> Self:
        if (self.token is None) == (self.token_file is None):
            raise ValueError("token and token_file; allowed: exactly one of them")
        if self.token is not None and len(self.token.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"a token that is too short; allowed: {_SHORTEST_TOKEN} characters or more")
        return self


class PushSource:
    """Takes pages while it is open, and makes readings of them.

    Pages come by POST or PUT to ``/metrics/instance/NAME[/namespace/NAME][/pod/NAME][/variant/NAME]`` in the text
    format, as to a Pushgateway; DELETE there says that an engine is gone.

    Args:
        options: where and what.
        token: that pushes must show.
        clock: for times.
    """

    def __init__(self, options: PushOptions, token: str, clock: Clock) -> None:
        self.options = options
        self._token = token.encode()
        self._clock = clock
        self._lock = Lock()
        self._book = PageBook(retention_s=options.retention_s, pools=options.pools)
        self._refused: dict[str, int] = {}
        self._server: ReceivingServer | None = None

    def __enter__(self) -> Self:
        """Begin to listen.

        Raises:
            TemporaryError: the port is taken.
        """
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self.close()

    @property
    def most_bytes(self) -> int:
        """Longest page."""
        return self.options.most_bytes

    @property
    def timeout_s(self) -> float:
        """Longest time of a push, s."""
        return self.options.timeout_s

    @property
    def at_once(self) -> int:
        """Pushes taken at once."""
        return self.options.at_once

    @property
    def port(self) -> int:
        """The port that is listened on; 0: none."""
        return 0 if self._server is None else int(self._server.server_address[1])

    def open(self) -> None:
        """Begin to listen.

        Raises:
            TemporaryError: the port is taken.
        """
        if self._server is not None:
            return
        self._server = listen(self.options.port, self)

    def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """See :class:`planner.control.protocols.MetricsSource`."""
        with self._lock:
            for origin in self._book.origins:
                if now_s - (self._book.last_s(origin) or 0.0) > self.options.forget_s:
                    self._book.forget(origin)
            findings = [
                Finding(
                    subject="pushed metrics", problem=f"{count} pushes refused: {why}", remedy=_REMEDIES[why]
                )
                for why, count in sorted(self._refused.items())
            ]
            self._refused.clear()
            return self._book.reading(variants, now_s, findings=findings, complete=self._server is not None)

    def admits(self, header: str | None) -> bool:
        """Whether a push shows the token."""
        shown = (header or "").encode("utf-8", "replace")
        return hmac.compare_digest(shown, b"Bearer " + self._token)

    def monotonic_s(self) -> float:
        """The clock of limits, s."""
        return self._clock.monotonic_s()

    def refuse(self, why: str) -> None:
        """Count a push that was refused."""
        with self._lock:
            self._refused[why] = self._refused.get(why, 0) + 1

    def take(self, origin: Origin, text: str) -> bool:
        """Note a page; False where too many engines push."""
        with self._lock:
            is_new = self._book.last_s(origin) is None
            if is_new and len(self._book.origins) >= self.options.most_origins:
                return False
            self._book.take(origin, text, self._clock.unix_s())
            return True

    def forget(self, origin: Origin) -> None:
        """Drop an engine that says it is gone."""
        with self._lock:
            self._book.forget(origin)


_REMEDIES: Final = {
    DENIED: "give engines the token of the receiver; or somebody else is trying",
    LARGE: "push fewer series, or allow more with most_bytes",
    MANY: "engines under changing names, or allow more with most_origins",
    PATH: "push to /metrics/instance/NAME[/namespace/NAME][/pod/NAME]",
    BUSY: "spread the pushes, or allow more with at_once",
    CUT: "engines that end, or a slow connection",
}


def source(options: Mapping[str, Any], clock: Clock) -> PushSource:
    """Make the source of these options, and begin to listen.

    Raises:
        ConfigurationError: lists everything that is wrong with them.
        TemporaryError: the port is taken.
    """
    read = options_of(PushOptions, "push", options)
    receiver = PushSource(read, _token(read), clock)
    receiver.open()
    return receiver


def _token(options: PushOptions) -> str:
    if options.token is not None:
        return options.token.get_secret_value()
    file = options.token_file
    found = ""
    try:
        token = file.read_text(encoding="ascii").strip() if file is not None else ""
    except (OSError, UnicodeError) as cause:
        token, found = "", f"that it cannot be read: {getattr(cause, 'strerror', None) or 'no ASCII text'}"
    if len(token) < _SHORTEST_TOKEN:
        found = found or "a token that is too short"
        allowed = f"a file with {_SHORTEST_TOKEN} characters or more"
        raise ConfigurationError.from_findings(
            [InputFinding(str(file), None, "push.token_file", found, allowed)]
        )
    return token
