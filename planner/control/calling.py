"""What calls to other machines have in common: how long to wait for the next, and why TLS failed."""

from __future__ import annotations

import os
import ssl
from typing import Final

__all__ = ["asked_wait_s", "jittered", "tls_reason"]

_LONGEST_WAIT: Final = 5
"""Digits of the seconds that a server may ask us to wait."""


def jittered(wait_s: float, share: float = 0.2) -> float:
    """A wait that is longer by up to ``share`` of it, so that many of us do not come back at once."""
    # Chance of the machine: nothing that is decided rests on it.
    return wait_s * (1.0 + share * int.from_bytes(os.urandom(2), "big") / 65_535)


def asked_wait_s(header: str | None) -> float | None:
    """The wait that a ``Retry-After`` asks for, s; None: it asks for none, or for a date."""
    said = header or ""
    return float(said) if said.isascii() and said.isdigit() and len(said) <= _LONGEST_WAIT else None


def tls_reason(cause: BaseException) -> str | None:
    """Why TLS failed, from an exception of a client that wraps that of ``ssl``; None: it was not TLS that failed."""
    inner: BaseException | None = cause
    while inner is not None:
        if isinstance(inner, ssl.SSLError):
            return str(getattr(inner, "verify_message", "") or inner.reason or "no TLS")
        wrapped = [each for each in inner.args if isinstance(each, BaseException)]
        inner = wrapped[0] if wrapped else inner.__cause__ or inner.__context__
    return None
