"""The screen of ``analyze``: how full services are, what policies would do about it, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.observation import Observation
from planner.cli.screen.layout import Column, bullets, section, show_first, table
from planner.cli.screen.plain import LONGEST, plain
from planner.wording import counted, number, percent

if TYPE_CHECKING:
    from planner.cli.commands.analyze import RoleSaturation
    from planner.control.deciding import Decided, Verdict
    from planner.control.protocols import Decision

__all__ = ["show_analysis"]

_Row = TypeVar("_Row")
_SHOWN: Final = 40
_BAR: Final = 12
_UNKNOWN: Final = "?"
_MAY: Final = {"up": "red", "down": "yellow", "hold": "green"}
_FULL: Final = 1.0


def show_analysis(
    console: Console,
    seen: Observation,
    saturation: Sequence[RoleSaturation],
    decided: Mapping[str, Decided],
    *,
    every: bool = False,
) -> None:
    """Print how services stand and what each policy would decide.

    Args:
        console: where.
        seen: what was judged.
        saturation: by service and role.
        decided: by policy.
        every: all rows, not the first ones.
    """
    whole = "" if seen.complete else "; a source did not answer in full: nothing is scaled in"
    what = f"{counted(len(seen.variants), 'variant')}, {counted(len(seen.engines), 'engine')}{whole}"
    console.print(Text(what, style="bold" if seen.complete else "bold yellow"))
    most = None if every else _SHOWN
    section(console, "Saturation by τ and γ")
    _show(console, saturation, _saturations, most=most)
    for names, verdicts in _alike(decided):
        section(console, f"Demand and capacity, as {names} judges")
        _show(console, verdicts, _verdicts, most=most)
    section(console, "What would be decided")
    _show_decisions(console, decided, most)
    found = dict.fromkeys((*seen.findings, *(f for each in decided.values() for f in each.findings)))
    if found:
        section(console, "Findings", style="bold yellow")
        bullets(console, (plain(each.sentence, 4 * LONGEST) for each in [*found][:most]))


def _alike(decided: Mapping[str, Decided]) -> list[tuple[str, Sequence[Verdict]]]:
    """Verdicts, once for policies that judge alike."""
    found: dict[tuple[Verdict, ...], list[str]] = {}
    for name, each in decided.items():
        found.setdefault(tuple(replace(one, policy="") for one in each.verdicts), []).append(name)
    return [(" and ".join(names), verdicts) for verdicts, names in found.items()]


def _show(
    console: Console, rows: Sequence[_Row], made: Callable[[Sequence[_Row]], Table], *, most: int | None
) -> None:
    if rows:
        show_first(console, rows, made=made, most=most)
    else:
        console.print("No service could be judged: no variant has engines that tell.")


def _saturations(rows: Sequence[RoleSaturation]) -> Table:
    """A row per service and role: how full its replicas are on average, and how many are at τ."""
    made = table(
        [
            *(Column(name, right=False) for name in ("service", "role", "KV cache")),
            *(Column(name) for name in ("queue", "saturated", "below τ", "silent")),
            *(Column(name, right=False) for name in ("trigger γ", "scale-in")),
        ]
    )
    for row in rows:
        signal = row.signal
        usage = signal.usage_kv
        full = bool(signal.saturated)
        made.add_row(
            plain(f"{row.namespace}/{row.model}"),
            plain(row.role),
            Text.assemble((_bar(usage), "red" if full else "green"), f" {_share(usage)}"),
            _UNKNOWN if signal.usage_queue is None else number(signal.usage_queue),
            *(str(count) for count in (len(signal.saturated), signal.non_saturated, signal.missing)),
            Text("one more", style="red") if signal.scale_up else Text("–"),
            Text("safe", style="green") if signal.scale_in_safe else Text("not safe"),
        )
    return made


def _verdicts(verdicts: Sequence[Verdict]) -> Table:
    """A row per service and role, with a bar of how much of its capacity is asked for."""
    made = table(
        [
            *(Column(name, right=False) for name in ("service", "role", "judged by", "load")),
            *(Column(name) for name in ("demand", "capacity", "missing", "spare")),
            *(Column(name, right=False) for name in ("unit", "may")),
        ]
    )
    for each in verdicts:
        made.add_row(
            plain(f"{each.namespace}/{each.model}"),
            plain(str(each.role)),
            plain(each.analyzer),
            Text.assemble((_bar(each.utilization), _style(each.utilization)), f" {_share(each.utilization)}"),
            *(number(value) for value in (each.demand, each.capacity, each.required, each.spare)),
            plain(each.unit),
            Text(plain(each.may), style=_MAY.get(each.may, "")),
        )
    return made


def _bar(share: float | None) -> str:
    """``██████░░░░░░``; what is beyond the whole is not drawn."""
    filled = 0 if share is None else round(min(_FULL, max(0.0, share)) * _BAR)
    return "█" * filled + "░" * (_BAR - filled)


def _style(share: float | None) -> str:
    if share is None:
        return "dim"
    return "red" if share >= _FULL else "green"


def _share(share: float | None) -> str:
    return _UNKNOWN if share is None else percent(share)


def _show_decisions(console: Console, decided: Mapping[str, Decided], most: int | None) -> None:
    first = next(iter(decided.values()), None)
    if first is None or not first.decisions:
        console.print("There is no variant to decide on.")
        return
    rows = list(zip(*(each.decisions for each in decided.values()), strict=True))
    show_first(console, rows, made=lambda shown: _decisions(decided, shown), most=most)


def _decisions(decided: Mapping[str, Decided], rows: Sequence[Sequence[Decision]]) -> Table:
    """A row per variant; where policies agree on count and reason they share a column's words."""
    alone = len(decided) == 1
    made = table(
        [
            *(Column(name, right=False) for name in ("variant", "accelerator")),
            *(Column(name) for name in ("ready", "pending", "wanted", *decided)),
            Column("why", right=False),
        ]
    )
    for row in rows:
        variant = row[0].variant
        made.add_row(
            plain(f"{variant.namespace}/{variant.name}"),
            plain(variant.accelerator or _UNKNOWN),
            str(variant.ready),
            str(variant.pending),
            _UNKNOWN if variant.wanted is None else str(variant.wanted),
            *(_count(each) for each in row),
            plain(_why(decided, row, alone=alone), 4 * LONGEST),
        )
    return made


def _count(decision: Decision) -> Text:
    before = decision.variant.wanted
    if before is None or decision.desired == before:
        return Text(str(decision.desired), style="dim")
    return Text(str(decision.desired), style="bold green" if decision.desired > before else "bold yellow")


def _why(decided: Mapping[str, Decided], row: Sequence[Decision], *, alone: bool) -> str:
    """Reason and sentence of each policy; one where all say the same."""
    said = [f"{each.reason}: {each.message}" if each.message else each.reason for each in row]
    if alone or len(set(said)) == 1:
        return said[0]
    return "; ".join(f"{name}: {sentence}" for name, sentence in zip(decided, said, strict=True))
