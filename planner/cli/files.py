"""Answers on disk: one JSON document that holds the whole report, written at once or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from pydantic import ValidationError

    from models.report import Report
    from models.solution import Solution

__all__ = [
    "KIND",
    "LISTED",
    "check_target",
    "is_saved_report",
    "read_report",
    "read_solution_or_report",
    "write_report",
    "write_text",
    "written_at_once",
]

KIND: Final = "report"
LISTED: Final = 20
"""Findings of one file that are listed; more are counted."""


def check_target(path: Path) -> None:
    """Refuse a file that could not be written, before anything is computed.

    Raises:
        ConfigurationError: the folder is missing or closed to us, or the name is that of a folder.
    """
    folder = path.parent
    if path.is_dir():
        _refuse(path, "a folder", "the name of a file")
    if not folder.is_dir():
        _refuse(path, f"no folder {str(folder)!r}", "a file in a folder that exists")
    if not os.access(folder, os.W_OK):
        _refuse(
            path, f"the folder {str(folder)!r}, which we may not write to", "a folder that we may write to"
        )


def write_report(path: Path, report: Report) -> None:
    """Write a report with its schema version and fingerprint.

    Raises:
        ConfigurationError: the file cannot be written; nothing was left behind.
    """
    from models import SCHEMA

    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "fingerprint": report.fingerprint,
        KIND: report.model_dump(mode="json"),
    }
    write_text(
        path, json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"
    )


def write_text(path: Path, text: str) -> None:
    """Put ``text`` into a file in one move.

    Raises:
        ConfigurationError: the file cannot be written; nothing was left behind.
    """
    with written_at_once(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def written_at_once(path: Path) -> Iterator[Path]:
    """A file to write that takes the name ``path`` at the end: readers see the old file or the new one, never a half.

    Raises:
        ConfigurationError: the file cannot be written; nothing was left behind.
    """
    check_target(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            # A temporary file is for its owner alone; what takes its place is as open as any new file.
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as cause:
        _refuse(path, f"that it cannot be written: {cause.strerror}", "a file that we may write", cause)


def is_saved_report(path: Path) -> bool:
    """Whether a file looks like one that we wrote: a JSON object that names its kind and schema."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"schema", "kind"} <= document.keys()


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
