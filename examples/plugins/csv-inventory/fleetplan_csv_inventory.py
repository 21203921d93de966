"""A capacity discovery: accelerators from a CSV file, as a team without node labels may keep one.

    pool,accelerator,nodes,gpus_per_node,foreign
    h100-east,H100,4,8,3

``foreign`` GPUs are in use by others. A discovery never raises for what it cannot read: a row that makes no sense is left out
with a finding, and a file that cannot be read makes the inventory incomplete.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from models.hardware import Node, Pool
from models.observation import Finding
from models.value import Value
from planner.clock import Clock
from planner.control.options import options_of
from planner.control.protocols import Inventory


class Options(Value):
    """Options of the discovery."""

    path: Path = Field(description="CSV file with pool, accelerator, nodes, gpus_per_node, foreign")


class CsvInventory:
    """Reads the file afresh each time."""

    def __init__(self, options: Options) -> None:
        self._path = options.path

    def discover(self, now_s: float) -> Inventory:
        """The pools of the file."""
        del now_s
        subject = f"file {self._path}"
        try:
            with self._path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        except (OSError, ValueError, csv.Error) as cause:
            finding = Finding(subject=subject, problem=f"it cannot be read ({type(cause).__name__})")
            return Inventory(findings=(finding,), complete=False)
        pools, findings = [], []
        for line, row in enumerate(rows, start=2):
            try:
                pools.append(_pool(row))
            except (KeyError, TypeError, ValueError, ValidationError) as cause:
                findings.append(
                    Finding(subject=subject, problem=f"line {line} is left out ({type(cause).__name__})")
                )
        return Inventory(pools=tuple(pools), findings=tuple(findings))


def _pool(row: Mapping[str, str]) -> Pool:
    count, size, foreign = int(row["nodes"]), int(row["gpus_per_node"]), int(row["foreign"] or 0)
    if not 0 <= foreign <= count * size:
        raise ValueError("more GPUs in use than there are")
    nodes = []
    for place in range(count):
        taken = min(size, foreign)
        foreign -= taken
        nodes.append(Node(id=f"{row['pool']}-{place}", gpus=size, foreign_gpus=taken))
    return Pool(id=row["pool"], accelerator=row["accelerator"], nodes=tuple(nodes))


def source(options: Mapping[str, object], clock: Clock) -> CsvInventory:
    """The factory that the entry point names."""
    del clock
    return CsvInventory(options_of(Options, "csv", options))
