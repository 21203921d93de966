"""Screens of ``controller``: settings with their origins, a cycle, and how a controller stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.controller_status import ControllerStatus
from models.cycle_record import CycleRecord, VariantDecision
from models.observation import Finding
from planner.cli.screen.layout import Column, bullets, section, show_first, table
from planner.cli.screen.plain import LONGEST, plain
from planner.wording import counted

if TYPE_CHECKING:
    from planner.control.running.configuring import Setting

__all__ = ["show_cycle", "show_settings", "show_status"]

_SHOWN: Final = 40
_LONGEST_VALUE: Final = 200


def show_settings(console: Console, rows: Sequence[Setting], findings: Sequence[Finding]) -> None:
    """Print settings: path, value, origin."""
    columns = [Column("setting", right=False), Column("value", right=False), Column("from", right=False)]
    made = table(columns)
    for each in rows:
        made.add_row(plain(each.path), _value(each.value), plain(each.origin))
    console.print(made)
    _findings(console, findings)


def show_cycle(console: Console, record: CycleRecord, *, every: bool = False) -> None:
    """Print what a cycle decided; one without a change is a line."""
    report = record.report
    head = f"{_moment(record.at_s)} cycle {record.number} ({record.kind}, {record.trigger}): "
    head += (
        f"{counted(report.variants, 'variant')}, {report.replicas_before} → {report.replicas_after} replicas"
    )
    style = "bold" if report.complete else "bold yellow"
    console.print(
        Text(plain(f"{head}{'' if report.complete else '; a source did not answer in full'}"), style=style)
    )
    shown = [each for each in record.decisions if each.changes or every]
    if shown:
        console.print(_decisions(shown))
    for each in record.outcomes:
        if each.message:
            console.print(Text(plain(f"  {each.actuator}: {each.message}")))
    _findings(console, record.findings)


def show_status(console: Console, status: ControllerStatus, *, every: bool = False) -> None:
    """Print how a controller stands."""
    role = "leads" if status.leader else f"follows {status.holder or 'nobody'}"
    acts = "acts" if status.act else "a dry run: nothing is changed"
    console.print(Text(plain(f"{status.controller or 'controller'} {role}; {acts}"), style="bold"))
    if status.last_cycle_s is None:
        console.print("no cycle has ended yet")
    else:
        ago_s = max(0.0, status.at_s - status.last_cycle_s)
        report = status.report
        console.print(
            f"cycle {status.cycles} ended {_moment(status.last_cycle_s)}, {ago_s:.0f} s ago: "
            f"{counted(report.variants, 'variant')}, {report.replicas_before} → {report.replicas_after} replicas, "
            f"{counted(report.engines, 'engine')}"
        )
    if status.decisions:
        console.print()
        show_first(console, status.decisions, made=_decisions, most=None if every else _SHOWN)
    _findings(console, status.findings)


def _decisions(rows: Sequence[VariantDecision]) -> Table:
    columns = [
        Column("variant", right=False),
        Column("now"),
        Column("ready"),
        Column("to be"),
        Column("reason", right=False),
        Column("why", right=False),
    ]
    made = table(columns)
    for row in rows:
        made.add_row(
            plain("/".join(part for part in row.key if part)),
            "?" if row.before is None else str(row.before),
            str(row.ready),
            "?" if row.desired is None else str(row.desired),
            plain(row.reason),
            plain(row.message),
        )
    return made


def _findings(console: Console, findings: Sequence[Finding]) -> None:
    if findings:
        section(console, "Findings", style="bold yellow")
        bullets(console, [_sentence(each) for each in findings[:_SHOWN]])


def _sentence(finding: Finding) -> str:
    remedy = f"; {finding.remedy}" if finding.remedy else ""
    return plain(f"{finding.subject}: {finding.problem}{remedy}", longest=LONGEST)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return plain(text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…")


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
