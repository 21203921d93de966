"""A trace by name: a file of any known kind, told by what is in it, or a line that describes synthetic traffic."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from planner.errors import ConfigurationError, Finding, nearest
from planner.traces.badrows import BadRows, OnBadRow
from planner.traces.changing import Change, changed, merged
from planner.traces.chunks import renamed
from planner.traces.layouts import layout_of
from planner.traces.lengths import Empirical, Lengths
from planner.traces.ordering import WINDOW_S
from planner.traces.reading import Reading, lengths_of, requests_of
from planner.traces.requests import RequestChunk, Trace
from planner.traces.rows import Rows, beginning, csv_rows, json_rows
from planner.traces.servegen import Clients, TokenTable, clients_of, rates_of, tokens_of
from planner.traces.spec import KINDS, SECONDS, Asked, generator_of, lengths_from, parse_spec

__all__ = ["HowRead", "TraceFile", "open_trace", "open_traces"]

_SPEC: Final = re.compile(r"([A-Za-z-]+):(?![\\/])")
_SERVEGEN: Final = "servegen"
_CLIENTS, _RATES = ("client_id", "window_start_s", "rate_rps"), ("window_start_s", "total_rps")
_TOKENS: Final = ("client_id", "window_start_s", "requests")
_MOST_YAML: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class HowRead:
    """How traces are read.

    Attributes:
        services: names that a trace may speak of, in the order of their indices.
        policy: what is done with a bad row.
        window_s: rows of a file that arrive so much earlier than a row before them are put in order.
        seed: of synthetic traffic that gives none.
        change: what is done to the trace.
    """

    services: Sequence[str] = ()
    policy: OnBadRow = OnBadRow.ERROR
    window_s: float = WINDOW_S
    seed: int = 0
    change: Change = field(default_factory=Change)


@dataclass(slots=True)
class TraceFile:
    """A trace that can be read again and again, each time the same.

    Attributes:
        name: as the user gave it.
        kind: ``csv``, ``jsonl``, ``servegen`` or the kind of synthetic traffic.
        how: it is read.
        service: index of the service that all requests are for; None: as the trace says, else the first.
        bad: rows that the last reading left out or put in order.
    """

    name: str
    kind: str
    how: HowRead
    service: int | None
    _make: Any
    bad: BadRows = field(default_factory=BadRows)

    def __iter__(self) -> Iterator[RequestChunk]:
        """Chunks in order of arrival.

        Raises:
            ConfigurationError: what is in it cannot be replayed.
        """
        self.bad = BadRows(self.how.policy)
        trace, rest = self._make(self.bad, self.how)
        pieces: Trace = changed(trace, rest)
        if self.service is not None:
            pieces = (renamed(chunk, self.service) for chunk in pieces)
        yield from pieces


@dataclass(slots=True)
class _Together:
    """Several traces as one.

    Attributes:
        traces: in the order given.
    """

    traces: tuple[TraceFile, ...]

    def __iter__(self) -> Iterator[RequestChunk]:
        """Chunks in order of arrival."""
        return merged(self.traces)


def open_traces(names: Sequence[str], how: HowRead) -> tuple[Trace, tuple[TraceFile, ...]]:
    """One or several traces as one, and each of them.

    Args:
        names: files or lines; ``service=`` before one says for which service its requests are.
        how: they are read.

    Raises:
        ConfigurationError: everything that is wrong with the names, the lines and the beginnings of the files.
    """
    how.change.checked()
    opened: list[TraceFile] = []
    findings: list[Finding] = []
    for name in names:
        try:
            opened.append(_for_service(name, how))
        except ConfigurationError as error:
            findings.extend(error.findings or [Finding("", None, "--trace", str(error))])
    if not names:
        findings.append(
            Finding("", None, "--trace", "no trace", "a file, or a line such as poisson:rate=5,…")
        )
    if findings:
        raise ConfigurationError.from_findings(findings)
    traces = tuple(opened)
    return (traces[0] if len(traces) == 1 else _Together(traces)), traces


def _for_service(name: str, how: HowRead) -> TraceFile:
    service, equals, rest = name.partition("=")
    if equals and service in how.services:
        return open_trace(rest, how, service=how.services.index(service))
    if equals and re.fullmatch(r"[\w.@/-]+", service) and not Path(name).exists() and not _SPEC.match(name):
        near = nearest(service, how.services)
        raise ConfigurationError.from_findings(
            [Finding("", None, "--trace", f"the service {service!r}", ", ".join(how.services), near)]
        )
    return open_trace(name, how)


def open_trace(name: str, how: HowRead, *, service: int | None = None) -> TraceFile:
    """A trace by the path of its file, or by a line that describes it.

    Nothing but the beginning of a file is read; its kind is told by what stands there, never by its name.

    Args:
        name: path or line.
        how: it is read.
        service: index of the service that all its requests are for; None: as the trace says, else the first.

    Raises:
        ConfigurationError: there is no such file or kind, or the line or the header is wrong.
    """
    path = Path(name)
    line = _SPEC.match(name)
    if line is not None and not path.exists():
        return _described(*parse_spec(name), name=name, how=how, service=service)
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        kinds = ", ".join((*KINDS, _SERVEGEN))
        near = nearest(name.partition(":")[0], (*KINDS, _SERVEGEN))
        allowed = f"a file, or a line that begins with {kinds} and a colon"
        raise ConfigurationError.from_findings([Finding(name, None, "", found, allowed, near)])
    head = beginning(path, name)
    first = next((text for text in head.splitlines() if text.strip()), "")
    if first.lstrip().startswith("{") and ":" in first and not first.rstrip().endswith("{"):
        return _table(json_rows(path, name, head), "jsonl", how, service)
    rows = csv_rows(path, name, head)
    kind = _servegen_kind(rows)
    if kind is not None:
        return _servegen({kind: name}, name, how, service=service)
    if len(rows.names) > 1:
        return _table(rows, "csv", how, service)
    return _described(_yaml(head, name), (), name=name, how=how, service=service)


def _table(rows: Rows, kind: str, how: HowRead, service: int | None) -> TraceFile:
    layout_of(rows.names, file=rows.file, line=rows.line)

    def make(bad: BadRows, how: HowRead) -> tuple[Trace, Change]:
        named = () if service is not None else how.services
        return requests_of(rows, Reading(named, bad, how.window_s)), how.change

    return TraceFile(rows.file, kind, how, service, make)


def _yaml(head: str, file: str) -> dict[str, Any]:
    allowed = "a table with a header, JSON lines, or YAML with 'kind'"
    try:
        value = yaml.safe_load(io.StringIO(head)) if len(head) < _MOST_YAML else None
    except (yaml.YAMLError, RecursionError, ValueError):
        value = None
    if not isinstance(value, dict) or "kind" not in value:
        first = next((text for text in head.splitlines() if text.strip()), "")
        found = f"a file that begins with {first[:60]!r}" if first else "an empty file"
        raise ConfigurationError.from_findings([Finding(file, 1, "", found, allowed)])
    return {str(key): each for key, each in value.items()}


def _described(
    keys: Mapping[str, Any], earlier: Iterable[Finding], *, name: str, how: HowRead, service: int | None
) -> TraceFile:
    """Synthetic traffic of a line, or of a file whose folder is where the files that it names are."""
    path = Path(name)
    folder, where = (path.parent, name) if path.is_file() else (Path(), "--trace")
    if keys.get("kind") == _SERVEGEN:
        return _servegen(keys, name, how, folder=folder, service=service, earlier=earlier)
    made = generator_of(
        keys, lengths_of=lambda file: _lengths(file, folder, how), where=where, seed=how.seed, earlier=earlier
    )
    return TraceFile(name, str(keys["kind"]), how, service, lambda bad, how: (made, how.change))


def _lengths(file: str, folder: Path, how: HowRead) -> Lengths:
    """Pairs of lengths of a table."""
    path = folder / file
    if not path.is_file():
        raise ConfigurationError.from_findings(
            [Finding(file, None, "lengths", "no such file", "a table with lengths")]
        )
    head = beginning(path, file)
    rows = json_rows(path, file, head) if head.lstrip().startswith("{") else csv_rows(path, file, head)
    return Empirical(*lengths_of(rows, Reading(bad=BadRows(how.policy))))


def _servegen_kind(rows: Rows) -> str | None:
    for kind, columns in (("clients", _CLIENTS), ("rates", _RATES)):
        if set(columns) <= set(rows.names):
            return kind
    return None


def _servegen(
    keys: Mapping[str, Any],
    name: str,
    how: HowRead,
    *,
    folder: Path = Path(),
    service: int | None = None,
    earlier: Iterable[Finding] = (),
) -> TraceFile:
    """Traffic of ServeGen's clients or rates; lengths from the file of tokens that is named, or lies beside it."""
    asked = Asked(keys, name if Path(name).is_file() else "--trace", list(earlier))
    asked.only("clients", "rates", "tokens", "seed", "duration", "start", "input", "output", "lengths")
    given = [kind for kind in ("clients", "rates") if kind in keys]
    if len(given) != 1:
        asked.wrong(
            "clients", "both" if given else "neither clients nor rates", "one of clients=FILE and rates=FILE"
        )
        raise ConfigurationError.from_findings(asked.findings)
    bad = BadRows(how.policy)
    rows = _rows(str(keys[given[0]]), folder, asked, given[0])
    tokens = _tokens(keys, folder / str(keys[given[0]]), folder, asked, how, bad)
    seed = asked.whole("seed", how.seed) or 0
    start_s = asked.at_least_0("start", SECONDS, keys["start"]) if "start" in keys else 0.0
    length_s = asked.quantity("duration", SECONDS, math.inf)
    if asked.findings or rows is None or tokens is None:
        raise ConfigurationError.from_findings(asked.findings)
    windows, window_s = (clients_of if given[0] == "clients" else rates_of)(rows, bad)
    last_s = start_s + length_s
    whole = Clients(windows, window_s, tokens, seed, start_s, last_s)

    def make(count: BadRows, how: HowRead) -> tuple[Trace, Change]:
        count.rows, count.skipped, count.first = bad.rows, bad.skipped, list(bad.first)
        # What a slice leaves out is not made: two weeks have hundreds of millions of requests.
        cut = replace(
            whole,
            start_s=start_s + how.change.start_s,
            end_s=min(last_s, start_s + how.change.end_s),
        )
        return cut, replace(how.change, start_s=0.0, end_s=math.inf)

    return TraceFile(name, _SERVEGEN, how, service, make)


def _rows(file: str, folder: Path, asked: Asked, key: str) -> Rows | None:
    path = folder / file
    columns = {"clients": _CLIENTS, "rates": _RATES, "tokens": _TOKENS}[key]
    if not path.is_file():
        asked.wrong(key, f"no file {file!r}", f"a table with the columns {', '.join(columns)}")
        return None
    rows = csv_rows(path, file, beginning(path, file))
    missing = [column for column in columns if column not in rows.names]
    if missing:
        asked.wrong(
            key, f"{file!r} without the columns {', '.join(missing)}", f"the columns {', '.join(columns)}"
        )
        return None
    return rows


def _tokens(
    keys: Mapping[str, Any], beside: Path, folder: Path, asked: Asked, how: HowRead, bad: BadRows
) -> TokenTable | Lengths | None:
    if any(name in keys for name in ("input", "output", "lengths")):
        return lengths_from(asked, lambda file: _lengths(file, folder, how))
    file = str(keys["tokens"]) if "tokens" in keys else _sibling(beside)
    if file is None:
        asked.wrong("tokens", "nothing, and no file of tokens beside it", "tokens=FILE, or input and output")
        return None
    rows = _rows(file, folder if "tokens" in keys else Path(), asked, "tokens")
    return None if rows is None else tokens_of(rows, bad)


def _sibling(path: Path) -> str | None:
    """The file of tokens that came with a file of clients or rates."""
    stem = re.sub(r"_(clients|rate(_\w+?)?)\.csv(\.gz)?$", "", path.name)
    found = sorted(path.parent.glob(f"{stem}_tokens*.csv*")) if stem != path.name else []
    return str(found[0]) if found else None
