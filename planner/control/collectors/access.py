"""Who lets us in and how: addresses, tokens, certificates, limits. What fails says why and never shows a secret."""

from __future__ import annotations

import ssl
from enum import StrEnum
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from models.units import Count, PositiveCount, PositiveSeconds
from models.value import Value
from planner.errors import ConfigurationError

__all__ = [
    "Access",
    "Credentials",
    "Fault",
    "Retries",
    "Trouble",
    "checked",
    "shown_url",
    "stamps_of",
    "token_of",
    "trust_of",
]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_SECRET_BYTES: Final = 65_536


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


def token_of(credentials: Credentials) -> str | None:
    """The token to show now; None: none is asked for.

    Raises:
    Fault: its file cannot be used.
    """
    if credentials.bearer_token is not None:
        return credentials.bearer_token.get_secret_value()
    if credentials.token_file is None:
        return None
    try:
        with credentials.token_file.open("rb") as file:
            token = file.read(_SECRET_BYTES).decode("ascii").strip()
    except (OSError, UnicodeError) as cause:
        token, why = "", getattr(cause, "strerror", None) or "no text"
    else:
        why = "empty"
    if not token or not token.isprintable():
        raise Fault(Trouble.DENIED, f"the token file {credentials.token_file} cannot be used: {why}")
    return token


def trust_of(credentials: Credentials) -> ssl.SSLContext:
    """What the server must show, and what we show it.

    Raises:
        Fault: a certificate cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=str(credentials.ca_file) if credentials.ca_file else None)
        if credentials.client_cert is not None:
            key = str(credentials.client_key) if credentials.client_key else None
            # A password would be asked for on the terminal, and nobody is there.
            context.load_cert_chain(str(credentials.client_cert), key, password=lambda: b"")
    except (OSError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) and cause.strerror else "no certificate in PEM"
        files = [
            str(file)
            for file in (credentials.ca_file, credentials.client_cert, credentials.client_key)
            if file
        ]
        message = f"certificates cannot be read from {', '.join(files)}: {why}"
    else:
        if credentials.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
    raise Fault(Trouble.TLS, message)


def stamps_of(credentials: Credentials) -> tuple[int, ...]:
    """When the files of certificates were written, ns; 0 for one that is not there. They change when they are renewed."""
    return tuple(
        file.stat().st_mtime_ns if file.exists() else 0
        for file in (credentials.ca_file, credentials.client_cert, credentials.client_key)
        if file is not None
    )


def checked(credentials: Credentials) -> None:
    """Refuse certificates that cannot be read, before the first call.

    Raises:
        ConfigurationError: says which file.
    """
    try:
        trust_of(credentials)
    except Fault as fault:
        raise ConfigurationError(str(fault)) from None
