"""The ground of every noun: a frozen value with canonical JSON and a fingerprint."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict

__all__ = ["Value"]

_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Value(BaseModel):
    """A frozen, closed value. Equal values have equal canonical JSON, hence equal fingerprints."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True, ser_json_inf_nan="constants"
    )

    def canonical_json(self) -> str:
        """JSON with sorted keys and no spaces: the same value gives the same bytes everywhere."""
        return _JSON.encode(self.model_dump(mode="json"))

    @cached_property
    def fingerprint(self) -> str:
        """The first 16 hex digits of SHA-256 over the canonical JSON."""
        return self._digest(self.canonical_json())

    @staticmethod
    def _digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __copy__(self) -> Self:
        """A copy without what was worked out from the fields, which whoever copies is about to change."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def but(self, **changes: Any) -> Self:  # noqa: ANN401 - any field of the value
        """The same value with some fields changed, validated again.

        Raises:
            pydantic.ValidationError: a change breaks a rule of the value.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(fields | changes)
