"""Settings from several places, one above the other, each value with the place that it is from.

A flag goes before the environment, that before the file, that before a ConfigMap that is read live, and all of them
before the defaults. Mappings are joined key by key; a list replaces the one below it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.errors import Finding
from planner.scenario.reading import read_yaml
from planner.scenario.tree import Complaints, Entry

__all__ = ["ENVIRONMENT", "Layer", "environment_layer", "file_layer", "flags_layer", "merged", "text_entry"]

ENVIRONMENT: Final = "FLEETPLAN_CONTROLLER_"
"""Prefix of variables: ``FLEETPLAN_CONTROLLER_RULES__TAU_KV=0.7`` sets ``rules.tau_kv``."""
_MOST_BYTES: Final = 2**20
"""A ConfigMap holds no more, and nobody writes a longer file of settings by hand."""
_MOST_LEVELS: Final = 12
_OF_A_SERVICE: Final = re.compile(
    r"SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
)
"""Kubernetes tells pods of a Service named fleetplan-controller by variables that begin as ours do."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings from one place.

    Attributes:
        origin: as people know it: ``flags``, ``environment``, a file, a ConfigMap.
        entry: what is set there; a mapping.
    """

    origin: str
    entry: Entry


def text_entry(text: str, *, file: str, complaints: Complaints, path: str = "") -> Entry | None:
    """A YAML text as a mapping; None where it is refused, which is then complained about."""
    if len(text.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
        complaints.add(Finding(file, None, path, f"more than {_MOST_BYTES:,} bytes", "settings"))
        return None
    if not text.strip():
        return Entry({}, file, None, path)
    found = read_yaml(text, file=file, complaints=complaints, path=path)
    if found is not None and found.value is None:
        return Entry({}, file, None, path)
    if found is not None and not isinstance(found.value, Mapping):
        complaints.about(found, found.phrase(), allowed="a mapping of settings")
        return None
    return found


def file_layer(path: Path, complaints: Complaints) -> Layer | None:
    """What a file sets."""
    name = str(path)
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8")
    except OSError as cause:
        complaints.add(
            Finding(name, None, "", f"that it cannot be read: {cause.strerror}", "a file of settings")
        )
        return None
    except UnicodeDecodeError:
        complaints.add(Finding(name, None, "", "what is no UTF-8", "a file of settings"))
        return None
    entry = text_entry(text, file=name, complaints=complaints)
    return None if entry is None else Layer(name, entry)


def environment_layer(complaints: Complaints, environ: Mapping[str, str] | None = None) -> Layer:
    """What variables set; each holds a YAML value, two underscores go a level down."""
    found = os.environ if environ is None else environ
    entries = []
    for name in sorted(found):
        told = name.removeprefix(ENVIRONMENT)
        if told != name and not _OF_A_SERVICE.fullmatch(told):
            steps = told.lower().split("__")
            entries += _placed(steps, found[name], file=name, complaints=complaints)
    return Layer("environment", merged(entries))


def flags_layer(
    pairs: Iterable[str], complaints: Complaints, named: Iterable[tuple[str, Entry]] = ()
) -> Layer:
    """What flags set.

    Args:
        pairs: of ``--set``: ``rules.tau_kv=0.7``; the value is YAML.
        complaints: takes what is wrong.
        named: other flags: a path, and what it is set to.
    """
    entries = [_nested(path.split("."), entry) for path, entry in named]
    for pair in pairs:
        path, equals, value = pair.partition("=")
        if not equals or not path.strip():
            complaints.add(Finding("--set", None, "", repr(pair)[:200], "PATH=VALUE"))
            continue
        entries += _placed(path.strip().split("."), value, file="--set", complaints=complaints)
    return Layer("flags", merged(entries))


def merged(entries: Iterable[Entry]) -> Entry:
    """Mappings on top of one another, the first at the bottom."""
    whole = Entry({}, "", None, "")
    for entry in entries:
        whole = _over(whole, entry)
    return whole


def _over(below: Entry, above: Entry) -> Entry:
    if not (isinstance(below.value, Mapping) and isinstance(above.value, Mapping)):
        return above
    fields = dict(below.fields)
    for key, entry in above.fields.items():
        fields[key] = _over(fields[key], entry) if key in fields else entry
    return above.but(fields)


def _placed(steps: Sequence[str], text: str, *, file: str, complaints: Complaints) -> list[Entry]:
    path = ".".join(steps)
    if len(steps) > _MOST_LEVELS or not all(steps):
        complaints.add(Finding(file, None, path[:200], "a path that leads nowhere", "names of settings"))
        return []
    if len(text.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
        complaints.add(Finding(file, None, path, f"more than {_MOST_BYTES:,} bytes", "a value"))
        return []
    found = (
        read_yaml(text, file=file, complaints=complaints, path=path)
        if text.strip()
        else Entry("", file, None, path)
    )
    return [] if found is None else [_nested(steps, found)]


def _nested(steps: Sequence[str], entry: Entry) -> Entry:
    for step in reversed(steps):
        entry = Entry({step: entry}, entry.file, None, "")
    return entry
