"""Plain words of a document: the core schema of YAML 1.2.

YAML 1.1 takes ``no`` for false, ``010`` for eight and ``12:30`` for 750. Here ``no`` and ``12:30`` are texts and
``010`` is ten; only ``true`` and ``false`` are booleans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from planner.scenario.tree import Scalar

__all__ = ["FLOAT", "INTEGER", "read_plain"]

INTEGER: Final = re.compile(r"[-+]?[0-9][0-9_]{0,300}$")
FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]{0,300}(\.[0-9_]{0,300})?)([eE][-+]?[0-9]{1,6})?$")
_WORDS: Final[Mapping[str, Scalar]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
} | {
    sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")
}  # fmt: skip


def read_plain(text: str) -> Scalar:
    """The value of an unquoted word."""
    if text in _WORDS:
        return _WORDS[text]
    if INTEGER.match(text):
        return int(text.replace("_", ""))
    if FLOAT.match(text):
        return float(text.replace("_", ""))
    return text
