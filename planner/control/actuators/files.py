"""Decisions as files for GitOps: a kustomize component for each cluster, and a script of kubectl lines; never a call.

A folder is written whole beside the one that is there and takes its place, so whoever reads sees all of it or all of
what was before. It is rewritten only where a count changes, since every change is a commit of somebody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from models.observation import Observation, VariantObservation
from models.value import Value
from planner.control.actuators.connections import Connections
from planner.control.actuators.folders import Written, read_written, replace_folder
from planner.control.actuators.published import Key
from planner.control.actuators.texts import texts_of_fleet
from planner.control.actuators.writing import outcome
from planner.control.options import options_of
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode
from planner.manifests.documents import Document

__all__ = ["FilesActuator", "FilesOptions", "actuator"]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""As Kubernetes names objects (RFC 1123): anything else could lead out of the folder."""
_ONLY: Final = "fleet"
"""Folder of the only cluster there is."""
Format = Literal["kustomize", "kubectl"]


class FilesOptions(Value):
    """Options of the actuator ``files``."""

    folder: Path = Field(description="where a folder for each cluster is; made where it is missing")
    formats: tuple[Format, ...] = Field(
        ("kustomize", "kubectl"), min_length=1, description="a kustomize component, a script for kubectl"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What came of the files of one cluster; without a folder nothing had to be written."""

    before: Written | None = None
    folder: Path | None = None
    problem: str = ""
    waits: bool = False


class FilesActuator:
    """Writes files.

    Args:
        options: where.
    """

    def __init__(self, options: FilesOptions) -> None:
        self._options = options
        self._known: dict[Key, Decision] = {}
        self._seen: Mapping[Key, VariantObservation] = {}
        self._texts: dict[str, dict[str, tuple[Document, str]]] = {}

    def saw(self, observation: Observation) -> None:
        """See :class:`planner.control.actuators.fleet.Seeing`; what is known to be gone leaves the files."""
        there = {each.key: each for each in observation.variants}
        if observation.complete:
            self._known = {key: each for key, each in self._known.items() if key in there}
        self._seen = there

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """See :class:`planner.control.protocols.Actuator`; decisions of a part of the fleet change that part alone."""
        refused: dict[Key, str] = {}
        for one in decisions:
            problem = _problem(one)
            if problem:
                refused[one.variant.key] = problem
            elif not one.variant.paused or one.variant.key not in self._known:
                self._known[one.variant.key] = one
        clusters = sorted({one.variant.cluster or "" for one in decisions})
        told = {name: self._write(name, refused, dry_run=dry_run) for name in clusters}
        return [
            self._said(one, told[one.variant.cluster or ""], refused, dry_run=dry_run) for one in decisions
        ]

    def _write(self, cluster: str, refused: Mapping[Key, str], *, dry_run: bool) -> _Told:
        fleet = [
            each for key, each in sorted(self._known.items()) if key[0] == cluster and key not in refused
        ]
        lacking = [
            key for key, each in self._seen.items()
            if key[0] == cluster and each.wanted is not None and key not in self._known and key not in refused
        ]  # fmt: skip
        if lacking:
            # Files are the whole fleet: without them others would be set back to what the base says.
            return _Told(problem=f"{len(lacking)} variants of this cluster have no decision yet", waits=True)
        folder = self._options.folder / (_safe(cluster) if cluster else _ONLY)
        texts = texts_of_fleet(
            fleet,
            self._texts.setdefault(cluster, {}),
            kustomize="kustomize" in self._options.formats,
            script="kubectl" in self._options.formats,
        )
        try:
            before = read_written(folder)
            if before is not None and before.digest == texts.digest:
                return _Told(before=before)
            if not dry_run:
                replace_folder(folder, texts)
        except OSError as cause:
            return _Told(problem=f"{folder} cannot be written ({cause.strerror or type(cause).__name__})")
        except ValueError as cause:
            return _Told(problem=str(cause))
        return _Told(before=before or Written({}, ""), folder=folder)

    def _said(self, decision: Decision, told: _Told, refused: Mapping[Key, str], *, dry_run: bool) -> Outcome:
        key = decision.variant.key
        if key in refused:
            code = OutcomeCode.GONE if decision.variant.wanted is None else OutcomeCode.FAILED
            return outcome(decision, code, refused[key])
        if told.problem:
            return outcome(decision, OutcomeCode.WAITING if told.waits else OutcomeCode.FAILED, told.problem)
        if told.folder is None or told.before is None:
            return outcome(decision, OutcomeCode.SAME)
        name = f"{key[1]}/{key[2]}"
        before, after = told.before.counts.get(name), self._known[key].desired
        if before == after:
            return outcome(decision, OutcomeCode.SAME)
        change = Difference(
            object=f"{told.folder} {name}", field="replicas", before="" if before is None else str(before),
            after=str(after),
        )  # fmt: skip
        code = OutcomeCode.WOULD if dry_run else OutcomeCode.DONE
        return outcome(decision, code, str(change), (change,))


def _problem(decision: Decision) -> str:
    """Why there is no file of a decision; empty: there is."""
    variant, target = decision.variant, decision.variant.target
    if variant.wanted is None:
        return f"there is no {target.kind} {target.name} to scale"
    names = (variant.namespace, target.name, target.scaler_name or target.name)
    wrong = next((name for name in names if _NAME.fullmatch(name) is None), None)
    return "" if wrong is None else f"{wrong!r:.80} is no name of Kubernetes, and no file is named after it"


def _safe(cluster: str) -> str:
    return "".join(
        letter if letter.isalnum() or letter in "-_." else f"%{ord(letter):x}" for letter in cluster
    )


def actuator(options: Mapping[str, object], connections: Connections) -> FilesActuator:
    """The actuator ``files``.

    Raises:
        ConfigurationError: an option is wrong.
    """
    return FilesActuator(options_of(FilesOptions, "files", options))
