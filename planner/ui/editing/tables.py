"""Parts of a scenario as rows, and rows put back into its fields. Nothing here knows of a screen.

A scenario is edited as the bare values of :meth:`Scenario.model_dump` without defaults. A cell that is empty stands
for the default, so clearing it takes the field out. What a table does not show stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from models.fleet import RunningVariant
from models.hardware import Node, NodeGrowth, Offering, Pool, PowerDomain, Quota
from models.saturation import Headroom, SaturationThresholds
from models.workload import Service, Slo, Survive

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["TABLES", "Column", "Kind", "Row", "Table", "fields_with", "rows_of"]

Row = dict[str, Any]
Fields = dict[str, Any]


class Kind(StrEnum):
    """What a cell holds."""

    TEXT = "text"
    NUMBER = "number"
    COUNT = "count"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        path: of the field in its part, e.g. ``slo.ttft_s``.
        label: heading, with the unit.
        kind: what its cells hold.
        model: value that has the field; it says what the field means.
        fixed: cannot be edited, since other parts name it.
    """

    path: str
    label: str
    kind: Kind
    model: type[BaseModel]
    fixed: bool = False

    @property
    def help(self) -> str:
        """What the field means, as the schema says it."""
        field = self.model.model_fields.get(self.path.rpartition(".")[2])
        return (field.description or "") if field is not None else ""

    @property
    def default(self) -> object:
        """What an empty cell stands for."""
        field = self.model.model_fields.get(self.path.rpartition(".")[2])
        return None if field is None or field.is_required() else field.default


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        name: of the table.
        title: heading.
        place: path of the list of parts in the scenario.
        columns: from left to right; the first is the name of the part.
        grows: whether rows may be added.
        owner: place of the parts that hold these, where they are nested; the row says which.
        about: what else there is to know before one edits it.
    """

    name: str
    title: str
    place: tuple[str, ...]
    columns: tuple[Column, ...]
    grows: bool = False
    owner: tuple[str, ...] = ()
    about: str = ""


RATE: Final = "arrival_rps"
"""Not a field of a service: the sum over its buckets, which are scaled together."""

REPLICAS: Final = "replicas"

TABLES: Final = (
    Table(
        "services",
        "Services",
        ("services",),
        (
            Column("id", "service", Kind.TEXT, Service, fixed=True),
            Column("llm", "LLM", Kind.TEXT, Service, fixed=True),
            Column(RATE, "rate, req/s", Kind.NUMBER, Service),
            Column("slo.ttft_s", "TTFT, s", Kind.NUMBER, Slo),
            Column("slo.itl_s", "ITL, s", Kind.NUMBER, Slo),
            Column("slo.e2e_s", "E2E, s", Kind.NUMBER, Slo),
            Column("headroom.relative", "headroom, share", Kind.NUMBER, Headroom),
            Column("priority", "priority", Kind.COUNT, Service),
            Column("min_replicas", "replicas at least", Kind.COUNT, Service),
            Column("max_replicas", "replicas at most", Kind.COUNT, Service),
            Column("survive.share", "survives, share", Kind.NUMBER, Survive),
            Column("best_effort", "best effort", Kind.FLAG, Service),
            Column("thresholds.tau_kv", "τ of KV", Kind.NUMBER, SaturationThresholds),
            Column("thresholds.gamma_kv", "γ of KV", Kind.NUMBER, SaturationThresholds),
            Column("team", "team", Kind.TEXT, Service),
        ),
    ),
    Table(
        "pools",
        "Pools",
        ("pools",),
        (
            Column("id", "pool", Kind.TEXT, Pool, fixed=True),
            Column("accelerator", "accelerator", Kind.TEXT, Pool, fixed=True),
            Column("offering.usd_per_h", "price, $/GPU-h", Kind.NUMBER, Offering),
            Column("growth.max_nodes", "nodes to add at most", Kind.COUNT, NodeGrowth),
            Column("growth.gpus_per_node", "GPUs of an added node", Kind.COUNT, NodeGrowth),
            Column("growth.usd_per_node_h", "price of an added node, $/h", Kind.NUMBER, NodeGrowth),
            Column("region", "region", Kind.TEXT, Pool),
            Column("failure_domain", "failure domain", Kind.TEXT, Pool),
        ),
    ),
    Table(
        "nodes",
        "Nodes",
        ("nodes",),
        (
            Column("id", "node", Kind.TEXT, Node),
            Column("gpus", "GPUs", Kind.COUNT, Node),
            Column("count", "how many alike", Kind.COUNT, Node),
            Column("foreign_gpus", "held by others", Kind.COUNT, Node),
            Column("ready", "ready", Kind.FLAG, Node),
            Column("cordoned", "cordoned", Kind.FLAG, Node),
        ),
        grows=True,
        owner=("pools",),
    ),
    Table(
        "quotas",
        "Quotas",
        ("limits", "quotas"),
        (
            Column("id", "quota", Kind.TEXT, Quota),
            Column("gpus", "GPUs at most", Kind.COUNT, Quota),
            Column("accelerator", "accelerator", Kind.TEXT, Quota),
            Column("namespace", "namespace", Kind.TEXT, Quota),
            Column("cluster", "cluster", Kind.TEXT, Quota),
        ),
        grows=True,
    ),
    Table(
        "power",
        "Power caps",
        ("limits", "power"),
        (
            Column("id", "power domain", Kind.TEXT, PowerDomain),
            Column("cap_w", "cap, W", Kind.NUMBER, PowerDomain),
        ),
        grows=True,
        about="A cap counts for the pools that name its power domain; the text says which pools a cap names itself.",
    ),
    Table(
        "running",
        "Running",
        ("fleet", "running"),
        (
            Column("service", "service", Kind.TEXT, RunningVariant),
            Column("variant", "variant", Kind.TEXT, RunningVariant),
            Column("pool", "pool", Kind.TEXT, RunningVariant),
            Column(REPLICAS, "ready replicas", Kind.COUNT, RunningVariant),
            Column("pending", "on order", Kind.COUNT, RunningVariant),
        ),
        grows=True,
        about="What runs now: plans are compared with it, and each replica started or stopped is a change.",
    ),
)

OWNER: Final = "pool"
"""Column of a nested table that says which part holds the row."""

NUMBER: Final = "#"
"""Column that says which part a row stands for; empty in a row that was added."""


def rows_of(fields: Mapping[str, Any], table: Table) -> list[Row]:
    """The rows of a table, each with the number of its part."""
    if table.owner:
        return [
            {NUMBER: number, OWNER: owner["id"], **_row(part, table)}
            for owner in _list(fields, table.owner)
            for number, part in enumerate(_list(owner, table.place))
        ]
    return [{NUMBER: number, **_row(part, table)} for number, part in enumerate(_list(fields, table.place))]


def fields_with(fields: Mapping[str, Any], table: Table, rows: Sequence[Row]) -> Fields:
    """The fields of the scenario with these rows instead of those of the table; missing rows are taken out."""
    edited = deepcopy(dict(fields))
    if not table.owner:
        _set(edited, table.place, [_part(_list(fields, table.place), row, table) for row in rows] or None)
        return edited
    for owner in _list(edited, table.owner):
        parts = _list(owner, table.place)
        own = [row for row in rows if row.get(OWNER) == owner["id"]]
        _set(owner, table.place, [_part(parts, row, table) for row in own] or None)
    return edited


def _row(part: Mapping[str, Any], table: Table) -> Row:
    return {column.path: _read(part, column) for column in table.columns}


def _read(part: Mapping[str, Any], column: Column) -> object:
    if column.path == RATE and "buckets" in part:
        return sum(bucket["arrival_rps"] for bucket in part["buckets"])
    found: Any = part
    for key in column.path.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return column.default if column.kind is Kind.FLAG else None
        found = found[key]
    return found


def _part(parts: Sequence[Fields], row: Row, table: Table) -> Fields:
    number = row.get(NUMBER)
    known = isinstance(number, int) and 0 <= number < len(parts)
    part = deepcopy(parts[number]) if known and number is not None else {}
    for column in table.columns:
        value = row.get(column.path)
        if value != _read(part, column):
            _write(part, column, value)
    return part


def _write(part: Fields, column: Column, value: object) -> None:
    if column.path == RATE:
        _scale_buckets(part, value)
        return
    if value == column.default and column.kind is Kind.FLAG:
        value = None
    _set(part, column.path.split("."), value)
    if column.path == REPLICAS and isinstance(value, int):
        _forget_details(part, value)


def _scale_buckets(service: Fields, rate: object) -> None:
    """All buckets by one factor; where there was no traffic, the first takes all of it."""
    buckets = service["buckets"]
    before = sum(bucket["arrival_rps"] for bucket in buckets)
    if not isinstance(rate, int | float) or isinstance(rate, bool):
        buckets[0]["arrival_rps"] = rate
        return
    for place, bucket in enumerate(buckets):
        share = bucket["arrival_rps"] / before if before else float(place == 0)
        bucket["arrival_rps"] = rate * share


def _forget_details(running: Fields, replicas: int) -> None:
    """Of fewer replicas no more is known than of each of them."""
    details = running.get("details", ())
    if len(details) > replicas:
        _set(running, ["details"], list(details)[: max(0, replicas)] or None)


def _list(fields: Mapping[str, Any], place: Sequence[str]) -> list[Fields]:
    found: Any = fields
    for key in place:
        found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return list(found) if isinstance(found, Sequence) else []


def _set(fields: Fields, place: Sequence[str], value: object) -> None:
    """Set a field; None takes it out, and every mapping that is empty then."""
    key, *rest = place
    if rest:
        inner = fields.get(key)
        inner = inner if isinstance(inner, dict) else {}
        _set(inner, rest, value)
        value = inner or None
    if value is None:
        fields.pop(key, None)
    else:
        fields[key] = value
