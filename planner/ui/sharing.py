"""Drafts to pass on: as a link that holds one of them, or as a file that holds all.

Both hold copies of what a draft is now, without its steps back: whoever opens one goes on with drafts of their own.
What comes in is a stranger's. It is bounded before it is unpacked, read as JSON, held to all that a scenario file is
held to, and the tables that its scenarios name must come with it: no path of this machine is ever taken from it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from planner.errors import ConfigurationError, Finding
from planner.planning import known_catalog
from planner.scenario import check_scenario
from planner.ui.uploads import LIMIT_BYTES, Upload, kept_tables
from planner.ui.workspace import DRAFTS_LIMIT, Draft, How

__all__ = ["LINK_LIMIT", "Shared", "file_of", "link_of", "opened_file", "opened_link"]

LINK_LIMIT: Final = 16_000
"""Letters of a link: more is cut by some programs on its way, and refused by servers."""

_UNPACKED_LIMIT: Final = 5_000_000
_VERSION: Final = 1
_FORMAT: Final = "fleetplan drafts"
_PREFIX: Final = f"{_VERSION}."
_WHAT_LINK: Final = "the link"


@dataclass(frozen=True, slots=True)
class Shared:
    """What somebody passed on.

    Attributes:
        drafts: at least one.
        how: the way they were solved.
    """

    drafts: tuple[Draft, ...]
    how: How


def link_of(draft: Draft, how: How) -> str:
    """A draft as the value of a parameter of an address.

    Raises:
        ConfigurationError: the draft is too large for an address, or one of its tables cannot be read.
    """
    packed = zlib.compress(_document((draft,), how), 9)
    text = f"{_PREFIX}{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"
    if len(text) > LINK_LIMIT:
        raise ConfigurationError(
            f"this draft is too large for a link: {len(text)} letters, at most {LINK_LIMIT}; pass it on as a file"
        )
    return text


def opened_link(text: str, folder: Path) -> Shared:
    """The draft in the parameter of an address.

    Args:
        text: what :func:`link_of` made, or anything.
        folder: where tables are kept.

    Raises:
        ConfigurationError: it holds no draft that can be planned; says all that is wrong with it.
    """
    if len(text) > LINK_LIMIT:
        raise _refused(_WHAT_LINK, f"{len(text)} letters", f"at most {LINK_LIMIT}")
    version, dot, packed = text.partition(".")
    if not dot or not version.isdecimal():
        raise _refused(_WHAT_LINK, "no draft", "a link that the page What-if made, whole")
    if f"{version}." != _PREFIX:
        raise _refused(_WHAT_LINK, f"version {version[:10]}", f"version {_VERSION}")
    return _opened(_unpacked(packed), folder, _WHAT_LINK)


def file_of(drafts: Sequence[Draft], how: How) -> bytes:
    """Drafts as a file, JSON.

    Raises:
        ConfigurationError: one of their tables cannot be read.
    """
    return _document(drafts, how, indent=1)


def opened_file(upload: Upload, folder: Path) -> Shared:
    """The drafts in a file.

    Args:
        upload: what :func:`file_of` made, or anything.
        folder: where tables are kept.

    Raises:
        ConfigurationError: it holds no drafts that can be planned; says all that is wrong with it.
    """
    if len(upload.content) > LIMIT_BYTES:
        size = f"{len(upload.content) / 1e6:.0f} MB"
        raise _refused(upload.name[:100], size, f"at most {LIMIT_BYTES / 1e6:.0f} MB")
    return _opened(upload.content, folder, upload.name[:100])


def _document(drafts: Sequence[Draft], how: How, indent: int | None = None) -> bytes:
    tables: dict[str, str] = {}
    shared = [{"name": draft.name, "scenario": _portable(draft, tables)} for draft in drafts]
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "how": how.model_dump(mode="json", exclude_defaults=True),
        "drafts": shared,
        "tables": tables,
    }
    return json.dumps(document, indent=indent, separators=None if indent else (",", ":")).encode()


def _portable(draft: Draft, tables: dict[str, str]) -> Mapping[str, Any]:
    """The fields of a scenario, with its tables by names that stand in ``tables`` instead of by paths."""
    fields = draft.scenario.model_dump(mode="json", exclude_defaults=True)
    if draft.scenario.profiles:
        fields["profiles"] = [_table(Path(profile), tables) for profile in draft.scenario.profiles]
    return fields


def _table(path: Path, tables: dict[str, str]) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as cause:
        finding = Finding(path.name, None, "profiles", "a table that cannot be read any more")
        raise ConfigurationError.from_findings([finding]) from cause
    stem = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path.stem)[:60]
    name, number = f"t-{stem}.csv", 2
    while tables.get(name, text) != text:
        name, number = f"t-{stem}-{number}.csv", number + 1
    tables[name] = text
    return name


def _unpacked(packed: str) -> bytes:
    try:
        content = base64.urlsafe_b64decode(f"{packed}{'=' * (-len(packed) % 4)}")
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(content, _UNPACKED_LIMIT)
    except (ValueError, zlib.error) as cause:
        raise _refused(_WHAT_LINK, "a text that is damaged", "the whole link") from cause
    if unpacker.unconsumed_tail:
        raise _refused(
            _WHAT_LINK,
            f"more than {_UNPACKED_LIMIT / 1e6:.0f} MB when unpacked",
            "less, or a file",
        )
    if not unpacker.eof:
        raise _refused(_WHAT_LINK, "a text that is cut off", "the whole link")
    return unpacked


def _opened(content: bytes, folder: Path, what: str) -> Shared:
    document = _read(content, what)
    parts, tables = document["drafts"], document.get("tables", {})
    findings = [*_faults(parts, tables, what)]
    if findings:
        raise ConfigurationError.from_findings(findings)
    uploads = [Upload(name, text.encode(errors="surrogatepass")) for name, text in tables.items()]
    kept = kept_tables(uploads, folder) if uploads else None
    drafts: list[Draft] = []
    for part in parts:
        try:
            drafts.append(_draft(part, kept, frozenset(tables)))
        except ConfigurationError as fault:
            findings += [replace(each, file=f"draft {part['name'][:60]!r}") for each in fault.findings]
    if findings:
        raise ConfigurationError.from_findings(findings)
    return Shared(tuple(drafts), _how(document, what))


def _read(content: bytes, what: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as cause:
        raise _refused(what, "a text that is no JSON", "what the page What-if made") from cause
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise _refused(what, "a file of another kind", "drafts that the page What-if kept")
    if document.get("version") != _VERSION:
        raise _refused(what, f"version {str(document.get('version'))[:10]}", f"version {_VERSION}")
    if not isinstance(document.get("drafts"), list) or not document["drafts"]:
        raise _refused(what, "no drafts", "at least one")
    return document


def _faults(parts: list[Any], tables: Any, what: str) -> Iterator[Finding]:  # noqa: ANN401 - any JSON
    if len(parts) > DRAFTS_LIMIT:
        yield Finding(what, None, "drafts", f"{len(parts)} drafts", f"at most {DRAFTS_LIMIT}")
    for number, part in enumerate(parts[:DRAFTS_LIMIT]):
        if not isinstance(part, dict) or not isinstance(part.get("scenario"), dict):
            yield Finding(what, None, f"drafts[{number}]", "no scenario", "a mapping with name and scenario")
        elif not isinstance(part.get("name"), str) or not part["name"].strip():
            yield Finding(what, None, f"drafts[{number}].name", "no name", "a text")
    if not isinstance(tables, dict) or not all(isinstance(text, str) for text in tables.values()):
        yield Finding(what, None, "tables", "no mapping of texts", "the text of each table by its name")


def _draft(part: Mapping[str, Any], kept: Path | None, tables: frozenset[str]) -> Draft:
    """A draft, held to all that a scenario file is held to."""
    fields = dict(part["scenario"])
    named = fields.get("profiles", [])
    names = named if isinstance(named, list) else [named]
    missing = [name for name in names if not isinstance(name, str) or name not in tables]
    if missing or (names and kept is None):
        found = f"a table that is not with it: {str((missing or names)[0])[:60]!r}"
        raise ConfigurationError.from_findings(
            [Finding("", None, "profiles", found, "tables that come along")]
        )
    if kept is not None and names:
        fields["profiles"] = [str(kept / name) for name in names]
    try:
        scenario = check_scenario(fields, catalog=known_catalog())
        return Draft(name=" ".join(part["name"].split())[:60], scenario=scenario)
    except RecursionError as cause:
        raise _refused("", "values inside values without an end", "a scenario") from cause
    except ValidationError as cause:
        raise _refused("", "a name that is no text", "letters that Unicode knows") from cause


def _how(document: Mapping[str, Any], what: str) -> How:
    try:
        return How.model_validate(document.get("how", {}))
    except ValidationError as cause:
        place = ".".join(["how", *(str(step) for step in cause.errors()[0]["loc"])])
        finding = Finding(what, None, place, "what cannot be", cause.errors()[0]["msg"])
        raise ConfigurationError.from_findings([finding]) from cause


def _refused(what: str, found: str, allowed: str) -> ConfigurationError:
    return ConfigurationError.from_findings([Finding(what, None, "", found, allowed)])
