"""Files that visitors bring: bounded, read as text, kept in a folder of their own, and confined to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from models.observation import Observation
from models.scenario import Scenario
from planner.errors import ConfigurationError, Finding
from planner.planning import known_catalog
from planner.scenario import parse_scenario

__all__ = ["LIMIT_BYTES", "Upload", "faults_of", "kept_tables", "observation_of", "scenario_of"]

LIMIT_BYTES: Final = 20_000_000
_SCENARIOS: Final = (".yaml", ".yml", ".json")
_TABLES: Final = (".csv",)
_OBSERVED: Final = b'{"at_s":'
"""First words of what ``fleetplan observe -o`` writes."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}")


@dataclass(frozen=True, slots=True)
class Upload:
    """One file as the browser sent it; nothing about it is trusted."""

    name: str
    content: bytes


def scenario_of(uploads: Sequence[Upload], folder: Path) -> Scenario:
    """The scenario in some files: one YAML, and the profile tables that it names.

    Args:
        uploads: files in any order.
        folder: where tables are kept, in a folder of these files' own.

    Raises:
        ConfigurationError: something is wrong; lists all of it.
    """
    findings = [finding for upload in uploads for finding in _faults(upload)]
    documents = [upload for upload in uploads if _suffix(upload) in _SCENARIOS]
    if len(documents) != 1 and not findings:
        found = f"{len(documents)} scenario files"
        findings.append(
            Finding("", None, "", found, "one .yaml file, and beside it the .csv tables it names")
        )
    if findings:
        raise ConfigurationError.from_findings(findings)
    tables = [upload for upload in uploads if _suffix(upload) in _TABLES]
    return parse_scenario(
        documents[0].content.decode("utf-8-sig"),
        name=documents[0].name,
        base_folder=kept_tables(tables, folder) if tables else None,
        catalog=known_catalog(),
        confined=True,
    )


def observation_of(uploads: Sequence[Upload]) -> Observation | None:
    """The observation in a file; the last one, where it is a record of several. None: the files are something else.

    Args:
        uploads: files as the browser sent them.

    Raises:
        ConfigurationError: it begins as an observation does, and is none.
    """
    if len(uploads) != 1 or not uploads[0].content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_OBSERVED):
        return None
    upload = uploads[0]
    findings = faults_of(upload, (*_SCENARIOS, ".jsonl"), "what 'fleetplan observe -o' wrote")
    if findings:
        raise ConfigurationError.from_findings(findings)
    lines = upload.content.decode("utf-8-sig").strip().splitlines()
    text = lines[-1] if all(line.startswith("{") for line in lines if line) else "\n".join(lines)
    try:
        return Observation.model_validate_json(text)
    except ValidationError as cause:
        fault = cause.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
    raise ConfigurationError.from_findings(
        [Finding(upload.name[:100], None, where, "no observation", str(fault["msg"])[:300])]
    )


def _faults(upload: Upload) -> list[Finding]:
    return faults_of(upload, (*_SCENARIOS, *_TABLES), "a .yaml file or a .csv table")


def faults_of(upload: Upload, suffixes: Sequence[str], allowed: str) -> list[Finding]:
    """What forbids to read a file: its name, its kind, its size, or that it is no text.

    Args:
        upload: as the browser sent it.
        suffixes: of files that may be read, with their dots.
        allowed: what they are, in words.
    """
    shown = upload.name[:100]
    if PurePosixPath(upload.name).name != upload.name or not _NAME.fullmatch(upload.name):
        return [
            Finding("", None, "", f"a file called {shown!r}", "a name of letters, digits and . _ - blank")
        ]
    if _suffix(upload) not in suffixes:
        return [Finding(shown, None, "", f"a {_suffix(upload) or 'nameless'} file", allowed)]
    if len(upload.content) > LIMIT_BYTES:
        size = f"{len(upload.content) / 1e6:.0f} MB"
        return [Finding(shown, None, "", size, f"at most {LIMIT_BYTES / 1e6:.0f} MB")]
    try:
        upload.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte 0x{upload.content[error.start]:02x} at {error.start}"
        return [Finding(shown, None, "", found, "text in UTF-8")]
    return []


def _suffix(upload: Upload) -> str:
    return PurePosixPath(upload.name).suffix.lower()


def kept_tables(tables: Sequence[Upload], folder: Path) -> Path:
    """A folder that holds these tables: equal tables have one, so that a worker finds them again.

    Args:
        tables: with names that :func:`scenario_of` would take.
        folder: where such folders are.

    Raises:
        ConfigurationError: a name or a content is not what a table may have.
    """
    findings = [finding for table in tables for finding in _faults(table)]
    if findings:
        raise ConfigurationError.from_findings(findings)
    digest = hashlib.sha256()
    for table in sorted(tables, key=lambda each: each.name):
        digest.update(f"{table.name}\0{len(table.content)}\0".encode())
        digest.update(table.content)
    kept = folder / "tables" / digest.hexdigest()[:32]
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    for table in tables:
        (kept / table.name).write_bytes(table.content)
    return kept
