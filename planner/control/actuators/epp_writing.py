"""Writing the settings of one service's endpoint picker, and putting them back; former values stand in annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from planner.control.actuators.epp_options import EppService
from planner.control.actuators.epp_text import Edit, NotUnderstoodError, at_cap, configuration_in, put_back
from planner.control.actuators.writing import told_of
from planner.control.cluster import Api, ClusterFault, Kind, Trouble
from planner.control.cluster.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EARLIER_INFERENCE_OBJECTIVES,
    INFERENCE_OBJECTIVES,
)
from planner.control.cluster.reading import Object, annotations_of, at, mapping_of, texts_of, version_of
from planner.control.protocols import Decision, Difference, Outcome, OutcomeCode

__all__ = ["FORMER_PRIORITY", "FORMER_TEXT", "READ_BY_PICKER", "Done", "Writer"]

FORMER_PRIORITY: Final = "fleetplan.dev/former-priority"
"""Annotation of an InferenceObjective: its priority before, and the one that we set."""
FORMER_TEXT: Final = "fleetplan.dev/former-configuration"
"""Annotation of a ConfigMap: the text before, what was changed in it, and the digest of ours."""
READ_BY_PICKER: Final = "fleetplan.dev/configuration"
"""Annotation of the picker's pods: digest of the configuration that they were started for."""
_TRIES: Final = 4
_SHOWN: Final = 12
"""Letters of a digest that tell it from others for the eye."""


@dataclass(slots=True)
class Done:
    """What came of it.

    Attributes:
        differences: fields that were written, or would be.
        remarks: what was left, or could not be done, and why.
        changed: whether something was written.
        trouble: the first thing that went wrong; None: nothing did.
    """

    differences: list[Difference] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    changed: bool = False
    trouble: OutcomeCode | None = None

    def outcome_of(self, decision: Decision) -> Outcome:
        """The same as an outcome."""
        would = bool(self.differences) and not self.changed
        good = OutcomeCode.DONE if self.changed else OutcomeCode.WOULD if would else OutcomeCode.SAME
        return Outcome(
            decision=decision,
            applied=self.trouble is None and not would,
            changed=self.changed,
            message="; ".join((*map(str, self.differences), *self.remarks)),
            code=self.trouble or good,
            differences=tuple(self.differences),
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of one object.

    Attributes:
        fields: that change: path, before, after.
        patch: what is merged into it; None: nothing.
        remark: for people; empty: nothing to tell.
    """

    fields: tuple[tuple[str, str, str], ...] = ()
    patch: Mapping[str, Any] | None = None
    remark: str = ""


@dataclass(slots=True)
class Writer:
    """Changes the objects of one service.

    Args:
        api: of its cluster.
        service: whose picker, and what is set.
        dry_run: tell what would be done, and write nothing.
    """

    api: Api
    service: EppService
    dry_run: bool
    done: Done = field(default_factory=Done)

    def engage(self) -> Done:
        """Make the settings of the cap; what is made already is left alone."""
        for name, priority in sorted(self.service.priorities.items()):
            self._objective(name, lambda found, wanted=priority: _raised(found, wanted))  # type: ignore[misc]
        if self.service.config_map is not None:
            text = self._config_map(self._changed_text)
            if text is not None:
                self._restart(text)
        return self.done

    def release(self) -> Done:
        """Put everything back that we set."""
        for name in sorted(self.service.priorities):
            self._objective(name, _lowered)
        if self.service.config_map is not None:
            text = self._config_map(self._former_text)
            if text is not None and self._restart(text):
                self._config_map(_forgotten)
        return self.done

    def _objective(self, name: str, change: Callable[[Object], _Step]) -> None:
        label = f"InferenceObjective {self.service.where}/{name}"
        with_name = self._kind_of_objective(name, label)
        if with_name is not None:
            self._change(with_name, name, label, change)

    def _kind_of_objective(self, name: str, label: str) -> Kind | None:
        try:
            for kind in (INFERENCE_OBJECTIVES, EARLIER_INFERENCE_OBJECTIVES):
                if self.api.find(kind, self.service.where, name) is not None:
                    return kind
        except ClusterFault as fault:
            self._failed(label, *told_of(fault))
        else:
            self._failed(label, OutcomeCode.GONE, "there is none")
        return None

    def _config_map(self, change: Callable[[Object], _Step]) -> str | None:
        """The text that is there afterwards, where the change is ours; None: nothing of ours is there."""
        name = str(self.service.config_map)
        found = self._change(CONFIG_MAPS, name, f"ConfigMap {self.service.where}/{name}", change)
        note = _note(found, FORMER_TEXT) if found is not None else None
        if note is None or found is None:
            return None
        return texts_of(found.get("data")).get(str(note.get("key")))

    def _change(self, kind: Kind, name: str, label: str, change: Callable[[Object], _Step]) -> Object | None:
        """Read an object and merge what is to be changed; again from fresh state when somebody else was faster."""
        where = self.service.where
        for left in range(_TRIES - 1, -1, -1):
            try:
                found = self.api.get(kind, where, name)
                step = change(found)
                if step.patch is None or self.dry_run:
                    self._tell(label, step)
                    return found
                metadata = {**mapping_of(step.patch.get("metadata")), **version_of(found)}
                now = self.api.patch(kind, where, name, {**step.patch, "metadata": metadata})
            except NotUnderstoodError as cause:
                self._failed(label, OutcomeCode.FAILED, str(cause))
                return None
            except ClusterFault as fault:
                if fault.trouble is Trouble.CONFLICT and left:
                    continue
                self._failed(label, *told_of(fault))
                return None
            self.done.changed = True
            self._tell(label, step)
            return now
        raise AssertionError("unreachable: the last round returns")

    def _changed_text(self, found: Object) -> _Step:
        note = _note(found, FORMER_TEXT)
        key, text = configuration_in(texts_of(found.get("data")), self.service.key)
        ours = note is not None and "digest" in note
        if note is not None and ours and note["digest"] != _digest(text):
            return _Step(remark=f"{key} stays as somebody changed it since")
        former = str(note["text"]) if note is not None and ours else text
        wanted, edits = at_cap(former, self.service.settings)
        if wanted == text:
            return _Step()
        kept = {
            "key": key,
            "text": former,
            "digest": _digest(wanted),
            "edits": [[each.path, each.before, each.after] for each in edits],
        }
        fields = tuple(_field(key, each) for each in edits)
        return _Step(fields, {"data": {key: wanted}, **_noted(FORMER_TEXT, kept)}, self._when())

    def _former_text(self, found: Object) -> _Step:
        note = _note(found, FORMER_TEXT)
        if note is None or "digest" not in note:
            return _Step()
        key = str(note["key"])
        text = texts_of(found.get("data")).get(key)
        if text is None:
            return _Step((), _noted(FORMER_TEXT, None), f"{key} is gone, nothing is put back")
        edits = [Edit(tuple(path), before, after) for path, before, after in note["edits"]]
        no_edits: tuple[Edit, ...] = ()
        if note["digest"] == _digest(text):
            former, kept = str(note["text"]), no_edits
        else:
            former, kept = put_back(text, edits)
        # With a Deployment the note goes when that is restarted, so that a crash in between forgets nothing.
        after = None if self.service.deployment is None else {"key": key, "restored": True}
        back = tuple(
            _field(key, Edit(each.path, each.after, each.before)) for each in edits if each not in kept
        )
        stays = f"stays as somebody changed it since: {_paths(kept)}" if kept else self._when()
        return _Step(back, {"data": {key: former}, **_noted(FORMER_TEXT, after)}, stays)

    def _when(self) -> str:
        if self.service.deployment is None:
            return "holds from the next start of the picker"
        return f"Deployment {self.service.deployment} is restarted to read it" if self.dry_run else ""

    def _restart(self, text: str) -> bool:
        """Start the picker anew where it runs with another text; whether that is done or not needed."""
        name = self.service.deployment
        if name is None or self.dry_run:
            return name is None
        path = ("spec", "template", "metadata", "annotations")

        def change(found: Object) -> _Step:
            if texts_of(at(found, *path)).get(READ_BY_PICKER) == _digest(text):
                return _Step()
            template = {"metadata": {"annotations": {READ_BY_PICKER: _digest(text)}}}
            now = texts_of(at(found, *path)).get(READ_BY_PICKER, "")[:_SHOWN]
            return _Step(
                ((".".join((*path, READ_BY_PICKER)), now, _digest(text)[:_SHOWN]),),
                {"spec": {"template": template}},
            )

        return self._change(DEPLOYMENTS, name, f"Deployment {self.service.where}/{name}", change) is not None

    def _tell(self, label: str, step: _Step) -> None:
        self.done.differences += (
            Difference(object=label, field=path, before=before, after=after)
            for path, before, after in step.fields
        )
        if step.remark:
            self.done.remarks.append(f"{label}: {step.remark}")

    def _failed(self, label: str, code: OutcomeCode, why: str) -> None:
        self.done.trouble = self.done.trouble or code
        self.done.remarks.append(f"{label}: {why}")


def _raised(found: Object, wanted: int) -> _Step:
    note, now = _note(found, FORMER_PRIORITY), at(found, "spec", "priority")
    if note is not None and now != note.get("after"):
        return _Step(remark=f"stays at priority {_shown(now)}: somebody changed it since")
    if now == wanted:
        return _Step()
    former = now if note is None else note.get("before")
    kept = _noted(FORMER_PRIORITY, {"before": former, "after": wanted})
    return _Step((("spec.priority", _shown(now), str(wanted)),), {"spec": {"priority": wanted}, **kept})


def _lowered(found: Object) -> _Step:
    note, now = _note(found, FORMER_PRIORITY), at(found, "spec", "priority")
    if note is None:
        return _Step()
    gone = _noted(FORMER_PRIORITY, None)
    if now != note.get("after"):
        return _Step((), gone, f"stays at priority {_shown(now)}: somebody changed it since")
    former = note.get("before")
    former = former if isinstance(former, int) and not isinstance(former, bool) else None
    return _Step((("spec.priority", _shown(now), _shown(former)),), {"spec": {"priority": former}, **gone})


def _forgotten(found: Object) -> _Step:
    return _Step((), None if _note(found, FORMER_TEXT) is None else _noted(FORMER_TEXT, None))


def _note(found: Object, key: str) -> Mapping[str, Any] | None:
    """What we noted; None: nothing, or what cannot be ours."""
    text = annotations_of(found).get(key)
    try:
        note = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(note, dict) or not (
        _whole_text(note) or note.get("restored") is True or "after" in note
    ):
        return None
    return note


def _whole_text(note: Mapping[str, Any]) -> bool:
    edits = note.get("edits")
    return (
        all(isinstance(note.get(name), str) for name in ("key", "text", "digest"))
        and isinstance(edits, list)
        and all(
            isinstance(each, list) and len(each) == 3 and isinstance(each[0], list) and each[0]  # noqa: PLR2004 - an edit
            and all(isinstance(key, str) for key in each[0])
            for each in edits
        )
    )  # fmt: skip


def _noted(key: str, note: Mapping[str, Any] | None) -> dict[str, Any]:
    text = None if note is None else json.dumps(note, default=str, sort_keys=True)
    return {"metadata": {"annotations": {key: text}}}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(value: object) -> str:
    return "" if value is None else f"{value!r:.120}"


def _field(key: str, edit: Edit) -> tuple[str, str, str]:
    return f"{key}: {'.'.join(edit.path)}", _shown(edit.before), _shown(edit.after)


def _paths(edits: Sequence[Edit]) -> str:
    return ", ".join(".".join(each.path) for each in edits)
