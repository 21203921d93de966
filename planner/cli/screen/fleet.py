"""Tables of what clusters say: variants, accelerators, quotas."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from models.hardware import Node, Pool
from models.observation import QuotaObservation, VariantObservation
from planner.cli.screen.layout import Column, table
from planner.cli.screen.plain import plain
from planner.wording import number

__all__ = ["pools_table", "quotas_table", "variants_table"]

_UNKNOWN = "?"


def variants_table(variants: Sequence[VariantObservation]) -> Table:
    """One row for each variant: whom it serves, on what, how many there are and may be."""
    made = table(
        [
            *(Column(name, right=False) for name in ("variant", "namespace", "model", "accelerator", "role")),
            *(Column(name) for name in ("GPUs", "ready", "pending", "wanted", "bounds", "cost")),
            Column("state", right=False),
        ]
    )
    for each in variants:
        most = "" if each.max_replicas is None else str(each.max_replicas)
        made.add_row(
            *(plain(text or _UNKNOWN) for text in (each.name, each.namespace, each.model, each.accelerator)),
            str(each.role),
            str(each.gpus),
            str(each.ready),
            str(each.pending),
            _UNKNOWN if each.wanted is None else str(each.wanted),
            f"{each.min_replicas}–{most}",
            number(each.cost),
            _state(each),
        )
    return made


def _state(variant: VariantObservation) -> str:
    missed = [condition.reason for condition in variant.conditions if not condition.status]
    return plain(", ".join([*missed, *(["paused"] if variant.paused else [])]) or "–")


def pools_table(pools: Sequence[Pool]) -> Table:
    """One row for each pool: nodes, accelerators that new pods may use, and those of others."""
    names = ("nodes", "GPUs", "usable", "foreign")
    made = table([Column("pool", right=False), Column("accelerator", right=False), *map(Column, names)])
    for pool in pools:
        usable = [node for node in pool.nodes if node.ready and not node.cordoned and not node.tainted]
        held = sum(node.count * node.foreign_gpus for node in pool.nodes)
        nodes = sum(node.count for node in pool.nodes)
        row = (nodes, _gpus(pool.nodes), _gpus(usable), held)
        made.add_row(plain(pool.id), plain(pool.accelerator), *map(str, row))
    return made


def _gpus(nodes: Sequence[Node]) -> int:
    return sum(node.count * node.gpus for node in nodes)


def quotas_table(quotas: Sequence[QuotaObservation]) -> Table:
    """One row for each quota: what it counts, how much there may be, and is."""
    made = table(
        [Column("namespace", right=False), Column("counts", right=False), Column("allowed"), Column("in use")]
    )
    for quota in quotas:
        where = "/".join(part for part in (quota.cluster or "", quota.namespace) if part)
        made.add_row(plain(where), plain(quota.resource), str(quota.hard), str(quota.used))
    return made
