"""Identities. A key is a name the user gave, never a list position or a solver's name."""

from __future__ import annotations

from typing import Annotated, Final, NewType

from pydantic import StringConstraints

__all__ = [
    "NAME_PATTERN",
    "AcceleratorId",
    "CandidateId",
    "DomainId",
    "LlmId",
    "Name",
    "NodeId",
    "PoolId",
    "ServiceId",
    "VariantId",
]

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/@#+-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=253)]

LlmId = NewType("LlmId", Name)
ServiceId = NewType("ServiceId", Name)
VariantId = NewType("VariantId", Name)
AcceleratorId = NewType("AcceleratorId", Name)
PoolId = NewType("PoolId", Name)
NodeId = NewType("NodeId", Name)
DomainId = NewType("DomainId", Name)
CandidateId = NewType("CandidateId", Name)
