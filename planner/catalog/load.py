"""``data/`` -> Catalog: the shipped folder, then the user's own files, which go before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from models.hardware import Accelerator
from models.llm import Llm
from models.performance import MeasuredPoint
from models.queueing_profile import QueueingProfile
from planner.catalog.catalog import Catalog
from planner.catalog.entries import entries_of, rows_of
from planner.catalog.reading import Document, Where, read_document
from planner.errors import CatalogError, Finding, nearest
from planner.performance.profile import read_profile, read_text
from planner.shipped import shipped_data

__all__ = ["catalog_root", "load_catalog", "source_descriptions"]

_SECTIONS: Final = ("accelerators", "llms")
_QUEUEING: Final = "queueing"
_SOURCE_ROW: Final = re.compile(r"^\|\s*(?P<code>[A-Z]+\d+)\s*\|\s*(?P<what>.*?)\s*\|\s*$", re.MULTILINE)


class _Draft:
    """A catalog in the making; later files go before earlier ones."""

    def __init__(self) -> None:
        self.accelerators: dict[str, Accelerator] = {}
        self.llms: dict[str, Llm] = {}
        self.profiles: dict[str, tuple[MeasuredPoint, ...]] = {}
        self.queueing: list[QueueingProfile] = []
        self.sources: dict[str, Mapping[str, str]] = {}
        self.findings: list[Finding] = []
        self.files: dict[str, str] = {}

    def add(self, document: Document, section: str, *, where: Where = ()) -> None:
        """Take the entries of one section of a document."""
        if section == "accelerators":
            accelerators, sources, findings = entries_of(document, Accelerator, where=where)
            self.accelerators |= accelerators
        else:
            llms, sources, findings = entries_of(document, Llm, where=where)
            self.llms |= llms
        self.findings += findings
        self.sources |= {f"{section}/{key}": codes for key, codes in sources.items()}
        self.files |= {f"{section}/{key}": document.file for key in sources}

    def add_yaml(self, path: Path) -> None:
        """Take a file of the user: its top level names the sections."""
        document = read_document(path)
        data = document.data
        for key in data if isinstance(data, dict) else ():
            if key in _SECTIONS:
                self.add(document, str(key), where=(str(key),))
            elif key == _QUEUEING:
                rows, findings = rows_of(document, QueueingProfile, where=(_QUEUEING,))
                # What a user fitted goes before what ships.
                self.queueing[:0] = rows
                self.findings += findings
            else:
                near = nearest(str(key), (*_SECTIONS, _QUEUEING))
                found = f"the unknown key {key!r}"
                self.findings.append(
                    document.finding(
                        (str(key),), found, allowed=", ".join((*_SECTIONS, _QUEUEING)), suggestion=near
                    )
                )
        if not isinstance(data, dict):
            self.findings.append(document.finding((), "no mapping", allowed=" and ".join(_SECTIONS)))

    def add_folder(self, folder: Path) -> None:
        """Take a folder that is laid out as ``data/`` is."""
        for section in _SECTIONS:
            path = folder / "catalog" / f"{section}.yaml"
            if path.exists():
                self.attempt(path, section)
        for path in sorted(each for kind in ("*.csv", "*.yaml") for each in (folder / "profiles").glob(kind)):
            self.attempt(path)

    def attempt(self, path: Path, section: str | None = None) -> None:
        """Take one file; what is wrong with it joins the findings, so that all files are looked at."""
        try:
            if section is not None:
                self.add(read_document(path), section)
            elif path.is_dir():
                self.add_folder(path)
            elif path.suffix == ".csv":
                self.profiles[path.stem] = read_profile(path)
            else:
                self.add_yaml(path)
        except CatalogError as error:
            self.findings += error.findings

    def finish(self) -> Catalog:
        """The catalog, when nothing is wrong.

        Raises:
            CatalogError: something is; lists all of it.
        """
        self.findings += _shared_names("accelerators", self.accelerators, self.files)
        self.findings += _shared_names("llms", self.llms, self.files)
        if self.findings:
            raise CatalogError.from_findings(self.findings)
        return Catalog(
            accelerators=MappingProxyType(self.accelerators),
            llms=MappingProxyType(self.llms),
            profiles=MappingProxyType(self.profiles),
            sources=MappingProxyType(self.sources),
            queueing=tuple(self.queueing),
        )


def catalog_root(override: Path | None = None) -> Path:
    """The folder that holds ``catalog/`` and ``profiles/``.

    Args:
        override: a folder of the user (``FLEETPLAN_CATALOG_DIR``); None: the one that came with fleetplan.

    Raises:
        CatalogError: there is no such folder.
    """
    root = override or shipped_data()
    if not (root / "catalog").is_dir():
        fault = Finding(
            str(root), None, "", "no folder catalog/", allowed="a folder with catalog/ and profiles/"
        )
        raise CatalogError.from_findings([fault])
    return root


def load_catalog(root: Path | None = None, extra: Iterable[Path] = ()) -> Catalog:
    """Load the shipped catalog and the user's own files.

    Args:
        root: folder laid out as ``data/``; None: :func:`catalog_root`.
        extra: YAML files with ``accelerators:``, ``llms:`` and ``queueing:`` (as calibration writes it), profile tables (CSV), or folders laid out as
            ``data/``. An entry or table replaces an earlier one of the same name.

    Raises:
        CatalogError: something is wrong in any of the files; lists all of it, with file and line.
    """
    draft = _Draft()
    draft.add_folder(catalog_root(root))
    for path in extra:
        draft.attempt(path)
    return draft.finish()


def source_descriptions(root: Path | None = None) -> Mapping[str, str]:
    """What each source code of ``SOURCES.md`` stands for.

    Raises:
        CatalogError: the folder has no readable ``SOURCES.md``.
    """
    text = read_text(catalog_root(root) / "SOURCES.md")
    return MappingProxyType({row["code"]: row["what"] for row in _SOURCE_ROW.finditer(text)})


def _shared_names(
    section: str, entries: Mapping[str, Accelerator] | Mapping[str, Llm], origin: Mapping[str, str]
) -> Iterator[Finding]:
    """Names that two entries claim; a user's entry that repeats an id has replaced it and claims nothing twice."""
    owner = {key.casefold(): key for key in entries}
    for key, entry in entries.items():
        for alias in entry.aliases:
            first = owner.setdefault(alias.casefold(), key)
            if first != key:
                found = f"the alias {alias!r}, which {first} has too"
                yield Finding(
                    origin.get(f"{section}/{key}", ""), None, f"{key}.aliases", found, "a name of one entry"
                )
