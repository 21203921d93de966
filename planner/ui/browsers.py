"""Whose workspace it is: the token in the address bar belongs to the browser that it was made for.

Streamlit gives every browser a cookie against forged requests (``_streamlit_xsrf``), random and not in any link. A
token carries a tag that only that secret makes, so a link that somebody passes on is seen to be another browser's, and
nothing has to be kept to know it. The cookie lives as long as the browser runs: after that its own work is opened as a
copy too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from binascii import Error
from collections.abc import Mapping
from itertools import cycle
from typing import Final

__all__ = ["COOKIE", "browser_of", "is_of", "new_token"]

COOKIE: Final = "_streamlit_xsrf"
"""Streamlit's cookie: ``2|mask|masked secret|time``, with another mask every time, or the bare secret; hexadecimal."""

_PARTS: Final = 4
_LEAST_BYTES: Final = 16
_CHANCE_BYTES: Final = 10
_TAG_BYTES: Final = 6


def browser_of(cookies: Mapping[str, str]) -> bytes:
    """The secret of the browser that sent these cookies; empty where it sent none that can be read."""
    text = cookies.get(COOKIE, "").strip("\"'")
    try:
        if not text.startswith("2|"):
            secret = bytes.fromhex(text)
        else:
            parts = text.split("|")
            if len(parts) != _PARTS:
                return b""
            mask, masked = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
            secret = bytes(one ^ other for one, other in zip(masked, cycle(mask), strict=False))
    except ValueError:
        return b""
    return secret if len(secret) >= _LEAST_BYTES else b""


def new_token(browser: bytes = b"") -> str:
    """A name that nobody can guess, for one browser.

    Args:
        browser: its secret; empty: nobody will be taken for its owner.
    """
    chance = secrets.token_bytes(_CHANCE_BYTES)
    tag = _tag(chance, browser) if browser else secrets.token_bytes(_TAG_BYTES)
    return base64.urlsafe_b64encode(chance + tag).decode().rstrip("=")


def is_of(token: str, browser: bytes) -> bool:
    """Whether a token was made for this browser."""
    try:
        held = base64.urlsafe_b64decode(f"{token}==")
    except (Error, ValueError):
        return False
    if not browser or len(held) != _CHANCE_BYTES + _TAG_BYTES:
        return False
    return hmac.compare_digest(held[_CHANCE_BYTES:], _tag(held[:_CHANCE_BYTES], browser))


def _tag(chance: bytes, browser: bytes) -> bytes:
    return hmac.digest(browser, b"fleetplan workspace" + chance, hashlib.sha256)[:_TAG_BYTES]
