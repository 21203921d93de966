"""Files that ``apply`` leaves beside its records, which lead back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.applied import Undo

__all__ = ["read_undo"]


def read_undo(path: Path) -> Undo | None:
    """What a file of ``apply`` leads back from; None: the file is something else.

    Raises:
        ConfigurationError: it is such a file, of another version or changed since.
    """
    from pydantic import ValidationError

    from models import SCHEMA
    from models.applied import Undo
    from planner.control.carrying import UNDO

    document = _object(path)
    if document.get("kind") != UNDO:
        return None
    found, allowed = "", "the file as 'fleetplan apply' wrote it"
    if document.get("schema") != SCHEMA:
        found = f"schema {document.get('schema')!r}"
    else:
        try:
            undo = Undo.model_validate(document.get(UNDO))
        except ValidationError:
            found = "content that is no way back"
        else:
            if undo.fingerprint == document.get("fingerprint"):
                return undo
            found = "content that its fingerprint does not fit: it was changed"
    raise ConfigurationError.from_findings([Finding(str(path), None, "", found, allowed)])


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one where there is none, which whoever reads answers complains of."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
