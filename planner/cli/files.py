"""Answers on disk: one JSON document that holds the whole report, written at once or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from planner.cli.outputs import Output
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from pydantic import ValidationError

    from models.report import Report
    from models.solution import Solution

__all__ = [
    "KIND",
    "LISTED",
    "is_saved_report",
    "names_our_schema",
    "read_report",
    "read_solution_or_report",
    "report_output",
    "write_report",
]

KIND: Final = "report"
LISTED: Final = 20
"""Findings of one file that are listed; more are counted."""


def report_output(path: Path, *, inputs: Iterable[Path] = (), force: bool = False) -> Output:
    """Where a report goes: it may take the place of another report."""
    return Output(path=path, ours=_is_report_of_ours, inputs=tuple(inputs), force=force)


def write_report(path: Path | Output, report: Report) -> None:
    """Write a report with its schema version and fingerprint.

    Raises:
        ConfigurationError: the file cannot or must not be written; nothing was left behind.
    """
    from models import SCHEMA

    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "fingerprint": report.fingerprint,
        KIND: report.model_dump(mode="json"),
    }
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    (path if isinstance(path, Output) else report_output(path)).write(f"{text}\n")


def is_saved_report(path: Path) -> bool:
    """Whether a file looks like one that we wrote: a JSON object that names its kind and schema."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"schema", "kind"} <= document.keys()


def names_our_schema(path: Path) -> bool:
    """Whether a file is a JSON object that names a version of our schema."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and str(document.get("schema")).startswith("fleetplan/")


def read_report(path: Path) -> Report:
    """Read a file that :func:`write_report` wrote.

    Raises:
        ConfigurationError: it is not one of ours, of another version, or was changed since.
    """
    return _report(path, _read_object(path))


def read_solution_or_report(path: Path) -> Solution | Report:
    """Read a saved report, or a bare solution.

    Raises:
        ConfigurationError: it is neither; says what is wrong with it.
    """
    from pydantic import ValidationError

    from models.solution import Solution

    document = _read_object(path)
    if "kind" in document or "schema" in document:
        return _report(path, document)
    try:
        return Solution.model_validate(document)
    except ValidationError as cause:
        raise ConfigurationError.from_findings(_invalid(path, cause)) from cause


def _is_report_of_ours(path: Path) -> bool:
    return is_saved_report(path) and names_our_schema(path)


def _report(path: Path, document: dict[str, Any]) -> Report:
    from pydantic import ValidationError

    from models import SCHEMA
    from models.report import Report

    if document.get("kind") != KIND:
        _refuse(path, f"kind {document.get('kind')!r}", f"{KIND!r}, a file that 'fleetplan plan -o' wrote")
    if document.get("schema") != SCHEMA:
        _refuse(path, f"schema {document.get('schema')!r}", f"{SCHEMA!r}; plan again with this version")
    try:
        report = Report.model_validate(document.get(KIND))
    except ValidationError as cause:
        raise ConfigurationError.from_findings(_invalid(path, cause, KIND)) from cause
    if report.fingerprint != document.get("fingerprint"):
        _refuse(
            path, "content that its fingerprint does not fit: it was changed", "the file as it was written"
        )
    return report


def _read_object(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as cause:
        _refuse(path, f"no file to read: {cause.strerror}", "a file that 'fleetplan plan -o' wrote", cause)
    except RecursionError as cause:
        _refuse(path, "JSON that is nested too deeply", "a file that 'fleetplan plan -o' wrote", cause)
    except ValueError as cause:
        line = cause.lineno if isinstance(cause, json.JSONDecodeError) else None
        allowed = "the JSON file of 'fleetplan plan -o', or a solution as JSON"
        raise ConfigurationError.from_findings(
            [Finding(str(path), line, "", f"no JSON: {cause}", allowed)]
        ) from cause
    if not isinstance(document, dict):
        _refuse(path, f"a JSON {type(document).__name__}", "a JSON object")
    return document


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _invalid(path: Path, cause: ValidationError, *prefix: str) -> Iterator[Finding]:
    errors = cause.errors(include_url=False)
    for error in errors[:LISTED]:
        where = ".".join(str(step) for step in (*prefix, *error["loc"]))
        yield Finding(str(path), None, where, _short(error["input"]), error["msg"])
    if len(errors) > LISTED:
        yield Finding(str(path), None, "", f"{len(errors) - LISTED} more problems")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - as much as a line can bear


def _refuse(path: Path, found: str, allowed: str, cause: BaseException | None = None) -> NoReturn:
    raise ConfigurationError.from_findings([Finding(str(path), None, "", found, allowed)]) from cause
