"""Which columns of a table say when requests arrive and how long they are, whatever tool wrote it.

Known by their names: Azure LLM inference traces 2023 and 2024 (``TIMESTAMP``, ``ContextTokens``, ``GeneratedTokens``),
BurstGPT (``Timestamp``, ``Request tokens``, ``Response tokens``), Mooncake (``timestamp`` in ms, ``input_length``,
``output_length``, ``hash_ids`` of 512 tokens), and tables with an arrival and two lengths under usual names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.errors import ConfigurationError, Finding

__all__ = ["Layout", "layout_of"]

_MS: Final = 1e-3
_MOONCAKE_BLOCK: Final = 512
_SHOWN: Final = 12

_SECONDS: Final = (
    "timestamp", "timestamps", "arrivals", "arrival", "arrivedat", "arrivaltime", "arrivaltimes", "arrivaltimesec",
    "time", "times", "requesttime", "requesttimestamp", "starttime", "starttimes", "offsets", "relativetime", "date",
    "datetime",
)  # fmt: skip
_MILLISECONDS: Final = ("timestampms", "arrivalms", "arrivaltimems", "timems", "starttimems", "requesttimems")
_INPUT: Final = (
    "inputtokens", "inputlength", "inputlen", "contexttokens", "requesttokens", "prompttokens", "promptlength", "promptlen",
    "numprefilltokens", "prefilltokens", "numinputtokens", "isl", "input", "promptsize",
)  # fmt: skip
_OUTPUT: Final = (
    "outputtokens", "outputlength", "outputlen", "generatedtokens", "responsetokens", "completiontokens", "responselength",
    "responselen", "numdecodetokens", "decodetokens", "numoutputtokens", "osl", "output", "tokensize", "generationtokens",
)  # fmt: skip
_SERVICE: Final = ("service", "servicename", "serviceid")
_PRIORITY: Final = ("priority",)
_PREFIX: Final = ("hashids", "prefixhashes", "blockhashes")


def _plain(name: str) -> str:
    return re.sub(r"[\s_.\-()\[\]/]+", "", name).casefold()


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of columns as they stand in the file.

    Attributes:
        arrival: None: the table has lengths only.
        scale_s: seconds of one unit of an arrival that is a number.
        input_tokens: of the prompt.
        output_tokens: of the answer.
        service: names a service; None: no column does.
        priority: larger is more important; None: no column says.
        prefix: block hashes of the prompt; None: nobody knows prefixes.
        prefix_block_tokens: tokens of one of these blocks.
    """

    arrival: str | None
    scale_s: float
    input_tokens: str
    output_tokens: str
    service: str | None = None
    priority: str | None = None
    prefix: str | None = None
    prefix_block_tokens: int = _MOONCAKE_BLOCK


def layout_of(names: Sequence[str], *, file: str, line: int, arrivals: bool = True) -> Layout:
    """The layout of a table with these columns.

    Args:
        names: of its columns.
        file: for findings.
        line: of the header.
        arrivals: whether it must say when requests arrive.

    Raises:
        ConfigurationError: a column is missing; names all that are.
    """
    there = {_plain(name): name for name in reversed(names)}
    seconds, milliseconds = _first(there, _SECONDS), _first(there, _MILLISECONDS)
    found = {"input tokens": _first(there, _INPUT), "output tokens": _first(there, _OUTPUT)}
    if arrivals:
        found = {"arrival": seconds or milliseconds} | found
    usual = {
        "arrival": ("TIMESTAMP", "arrival_s", "arrival_ms"),
        "input tokens": ("ContextTokens", "input_tokens"),
        "output tokens": ("GeneratedTokens", "output_tokens"),
    }
    missing = [
        Finding(file, line, "", f"no column with the {what}", f"a name such as {', '.join(usual[what])}")
        for what, name in found.items()
        if name is None
    ]
    if missing:
        raise ConfigurationError.from_findings([*missing, _columns(names, file, line)])
    prefix = _first(there, _PREFIX)
    # Mooncake counts milliseconds without saying so; its lengths have names of their own.
    in_ms = seconds is None or {"timestamp", "inputlength", "outputlength"} <= there.keys()
    return Layout(
        arrival=seconds or milliseconds,
        scale_s=_MS if in_ms else 1.0,
        input_tokens=found["input tokens"] or "",
        output_tokens=found["output tokens"] or "",
        service=_first(there, _SERVICE),
        priority=_first(there, _PRIORITY),
        prefix=prefix,
    )


def _first(there: Mapping[str, str], wanted: Iterable[str]) -> str | None:
    return next((there[name] for name in wanted if name in there), None)


def _columns(names: Sequence[str], file: str, line: int) -> Finding:
    listed = ", ".join(repr(name[:40]) for name in names[:_SHOWN])
    return Finding(file, line, "", f"the columns {listed}{', …' if len(names) > _SHOWN else ''}")
