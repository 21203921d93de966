"""Where the record of a resize is kept, which is its lock as well: a Lease of Kubernetes, or a file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from models.resize_operation import TERMINAL, ResizeOperation
from planner.control.cluster import Api, ClusterFault, Trouble
from planner.control.cluster.kinds import LEASES
from planner.control.cluster.reading import text_at
from planner.control.cluster.resize_records import MARK, RECORD, record_name, record_of
from planner.errors import SafetyGateError, TemporaryError

__all__ = ["ANNOTATION", "FileStore", "LeaseStore"]

ANNOTATION: Final = RECORD


class LeaseStore:
    """A Lease beside the deployment, whose annotation holds the operation; its version tells who was faster.

    Args:
        api: of its cluster.
        namespace: of the deployment.
        name: of the deployment.
    """

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self._api, self._namespace = api, namespace
        self._name = record_name(name)
        self._version: str | None = None

    def close(self) -> None:
        """Nothing is held here: who is faster shows in the version."""

    def load(self) -> ResizeOperation | None:
        """See :class:`planner.control.resizing.world.OperationStore`."""
        try:
            found = self._api.find(LEASES, self._namespace, self._name)
        except ClusterFault as fault:
            raise TemporaryError(f"the record of the resize cannot be read: {fault}") from fault
        self._version = None if found is None else text_at(found, "metadata", "resourceVersion")
        try:
            return record_of(found)
        except ValidationError as cause:
            raise _unreadable(f"Lease {self._namespace}/{self._name}", cause) from None

    def save(self, operation: ResizeOperation) -> None:
        """See :class:`planner.control.resizing.world.OperationStore`."""
        _refuse_other(self.load(), operation)
        metadata = {"name": self._name, "labels": MARK, "annotations": {RECORD: operation.model_dump_json()}}
        holder = {} if operation.phase in TERMINAL else {"holderIdentity": operation.id}
        try:
            if self._version is None:
                self._api.create(LEASES, self._namespace, {"metadata": metadata, "spec": holder})
                return
            change = {
                "metadata": metadata | {"resourceVersion": self._version},
                "spec": {"holderIdentity": None, **holder},
            }
            self._api.patch(LEASES, self._namespace, self._name, change)
        except ClusterFault as fault:
            if fault.trouble in (Trouble.CONFLICT, Trouble.EXISTS):
                raise SafetyGateError(f"somebody else writes the record of this resize: {fault}") from fault
            raise TemporaryError(f"the record of the resize cannot be written: {fault}") from fault


class FileStore:
    """A file of JSON, replaced as a whole; for deployments outside of Kubernetes. One process at a time.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: int | None = None

    def load(self) -> ResizeOperation | None:
        """See :class:`planner.control.resizing.world.OperationStore`."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as cause:
            raise TemporaryError(f"{self._path} cannot be read: {cause}") from cause
        try:
            return ResizeOperation.model_validate_json(text)
        except ValidationError as cause:
            raise _unreadable(str(self._path), cause) from None

    def save(self, operation: ResizeOperation) -> None:
        """See :class:`planner.control.resizing.world.OperationStore`."""
        self._hold()
        _refuse_other(self.load(), operation)
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(operation.model_dump_json(indent=1))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as cause:
            raise TemporaryError(f"{self._path} cannot be written: {cause}") from cause

    def _hold(self) -> None:
        """A lock of the system, which ends with this process whatever happens."""
        if self._held is not None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            held = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as cause:
            raise TemporaryError(f"{self._path} cannot be locked: {cause}") from cause
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            os.close(held)
            raise SafetyGateError(f"another process resizes by {self._path}") from cause
        self._held = held

    def close(self) -> None:
        """Let others at it."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def _unreadable(where: str, cause: ValidationError) -> SafetyGateError:
    """What cannot be read may be a resize that runs: nobody may start another one over it."""
    return SafetyGateError(
        f"{where} holds a record that cannot be read ({cause.error_count()} errors); see what the deployment does, "
        "then delete it"
    )


def _refuse_other(there: ResizeOperation | None, operation: ResizeOperation) -> None:
    if there is not None and there.id != operation.id and there.phase not in TERMINAL:
        raise SafetyGateError(
            f"{operation.deployment}: a resize from {there.from_ranks} to {there.to_ranks} ranks is {there.phase.value}"
        )
