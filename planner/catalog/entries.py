"""Entries of a catalog file -> nouns, with the source code of every figure kept beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from models.value import Value
from planner.catalog.reading import Document, Where
from planner.errors import Finding, nearest

__all__ = ["entries_of", "rows_of"]

_FIGURE: Final = frozenset({"value", "source"})

Noun = TypeVar("Noun", bound=Value)


def entries_of(
    document: Document, noun: type[Noun], *, where: Where = ()
) -> tuple[dict[str, Noun], dict[str, Mapping[str, str]], list[Finding]]:
    """The entries at ``where`` of a document, each keyed by its id.

    A figure is written plainly or as ``{value: 80 GiB, source: S1}``.

    Returns:
        Entries by id; source code by field, by id; findings.
    """
    raw: Any = document.data
    for step in where:
        raw = raw[step]
    if not isinstance(raw, dict):
        return {}, {}, [document.finding(where, _kind(raw), allowed="entries, each under its id")]
    entries: dict[str, Noun] = {}
    sources: dict[str, Mapping[str, str]] = {}
    findings: list[Finding] = []
    for key, body in raw.items():
        here = (*where, str(key))
        if not isinstance(body, dict):
            findings.append(document.finding(here, _kind(body), allowed="a mapping of fields"))
            continue
        codes: dict[str, str] = {}
        fields = {name: _plain(value, (str(name),), codes) for name, value in body.items()}
        try:
            entries[str(key)] = noun.model_validate({"id": str(key), **fields})
            sources[str(key)] = codes
        except ValidationError as cause:
            findings += [
                _finding(document, here, dict(error), noun) for error in cause.errors(include_url=False)
            ]
    return entries, sources, findings


def rows_of(
    document: Document, noun: type[Noun], *, where: Where = ()
) -> tuple[tuple[Noun, ...], list[Finding]]:
    """The rows of a list at ``where`` of a document, and what is wrong with them."""
    raw: Any = document.data
    for step in where:
        raw = raw[step]
    if not isinstance(raw, list):
        return (), [document.finding(where, _kind(raw), allowed="a list of rows")]
    rows: list[Noun] = []
    findings: list[Finding] = []
    for index, body in enumerate(raw):
        here = (*where, index)
        if not isinstance(body, dict):
            findings.append(document.finding(here, _kind(body), allowed="a mapping of fields"))
            continue
        try:
            rows.append(noun.model_validate(body))
        except ValidationError as cause:
            findings += [
                _finding(document, here, dict(error), noun) for error in cause.errors(include_url=False)
            ]
    return tuple(rows), findings


def _plain(value: Any, path: tuple[str, ...], codes: dict[str, str]) -> Any:  # noqa: ANN401 - YAML holds anything
    """The value without its source; the source goes to ``codes`` under the dotted path."""
    if not isinstance(value, dict):
        return value
    if value.keys() == _FIGURE:
        codes[".".join(path)] = str(value["source"])
        return value["value"]
    return {name: _plain(inner, (*path, str(name)), codes) for name, inner in value.items()}


def _finding(document: Document, here: Where, error: dict[str, Any], noun: type[BaseModel]) -> Finding:
    # Tags of a union stand in the location of an error but not in the file.
    path = tuple(step for step in error["loc"] if step not in ("gqa", "mla"))
    if error["type"] == "extra_forbidden":
        allowed = list(_fields_at(noun, path[:-1]))
        found = f"the unknown key {path[-1]!r}"
        return document.finding(
            (*here, *path), found, allowed=", ".join(allowed), suggestion=nearest(str(path[-1]), allowed)
        )
    if error["type"] == "missing":
        return document.finding((*here, *path), "nothing", allowed="a value; this field is needed")
    allowed_text = str(error["msg"]).removeprefix("Value error, ")
    raw = error.get("input")
    found = f"the entry {here[-1]!r}" if isinstance(raw, dict) else repr(raw)
    return document.finding((*here, *path), found, allowed=allowed_text)


def _fields_at(noun: type[BaseModel], path: tuple[Any, ...]) -> Iterator[str]:
    """Names of the fields that may stand at ``path``."""
    if not path:
        yield from (name for name in noun.model_fields if name != "id")
        return
    field = noun.model_fields.get(str(path[0]))
    if field is None:
        return
    for part in getattr(field.annotation, "__args__", (field.annotation,)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield from _fields_at(part, path[1:])


def _kind(raw: object) -> str:
    return "nothing" if raw is None else f"{type(raw).__name__} {str(raw)[:40]!r}"
