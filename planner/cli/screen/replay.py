"""Policies side by side on one trace, as a table; then what failed, what was promised, and where figures are from."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from models.replay import PolicyRun, Replay, ServiceRun
from planner.cli.screen.layout import Column, bullets, section, table
from planner.wording import money, number, percent

__all__ = ["show_replay"]

_DASH = "–"
_MOST_VARIANTS = 12


def show_replay(console: Console, replay: Replay, *, every: bool = False) -> None:
    """Show a replay.

    Args:
        console: where.
        replay: what.
        every: every variant, however many there are.
    """
    arrivals = replay.runs[0].total.arrivals
    requests = f"{arrivals:,} request{'' if arrivals == 1 else 's'}"
    console.print(
        Text(f"{replay.scenario}: {requests}, seed {replay.seed}", style="bold"),
        soft_wrap=True,
    )
    _policies(console, replay)
    _failures(console, replay)
    _services(console, replay)
    _variants(console, replay, every=every)
    section(console, "step times")
    bullets(console, (f"{each.variant}: {each.source} ({each.origin})" for each in replay.steps))
    if replay.notes:
        section(console, "notes")
        bullets(console, replay.notes)


def _policies(console: Console, replay: Replay) -> None:
    cost = "$" if replay.cost_unit == "USD/h" else "cost"
    headers = ("done", "failed", "in time", "goodput\nreq/s", "TTFT p50\ns", "p95\ns", "p99\ns", "ITL mean\nms",
               "replica\nhours", "most\nreplicas", cost, "kWh", "changes")  # fmt: skip
    console.print()
    made = table([Column("policy", right=False), *(Column(header) for header in headers)])
    for run in replay.runs:
        made.add_row(Text(run.policy), *(Text(cell) for cell in _figures(run)))
    console.print(made)
    if any(not run.exact for run in replay.runs):
        console.print(
            Text("percentiles are within 0.5 %: there are too many requests to keep all", style="dim")
        )


def _figures(run: PolicyRun) -> Iterator[str]:
    total = run.total
    yield f"{total.done:,}"
    yield f"{total.failures:,}"
    yield percent(total.attainment, 3) if total.attainment is not None else _DASH
    yield number(total.goodput_rps)
    for value in (total.ttft.p50_s, total.ttft.p95_s, total.ttft.p99_s):
        yield number(value, 3) if value is not None else _DASH
    yield number(total.itl.mean_s * 1e3, 3) if total.itl.mean_s is not None else _DASH
    yield number(run.replica_hours)
    yield str(run.most_replicas)
    yield money(run.cost)
    yield number(run.energy_kwh)
    yield str(run.decisions)


def _failures(console: Console, replay: Replay) -> None:
    """Requests that failed by cause, and those that were still there at the end."""
    causes = [*dict.fromkeys(cause for run in replay.runs for cause in run.total.failed)]
    unfinished = any(run.total.unfinished for run in replay.runs)
    if not causes and not unfinished:
        return
    section(console, "failures by cause")
    last = [Column("unfinished")] if unfinished else []
    made = table(
        [Column("policy", right=False), *(Column(cause.replace("_", " ")) for cause in causes), *last]
    )
    for run in replay.runs:
        cells = [f"{run.total.failed.get(cause, 0):,}" for cause in causes]
        cells += [f"{run.total.unfinished:,}"] if unfinished else []
        made.add_row(Text(run.policy), *(Text(cell) for cell in cells))
    console.print(made)


def _services(console: Console, replay: Replay) -> None:
    """Promises of each service under each policy."""
    shown = [
        (run.policy, service)
        for run in replay.runs
        for service in run.services
        if service.arrivals and (service.promises or len(run.services) > 1)
    ]
    if not shown:
        return
    section(console, "promises")
    made = table(
        [
            Column("service", right=False),
            Column("policy", right=False),
            Column("done"),
            Column("in time"),
            Column("promises", right=False),
        ]
    )
    for policy, service in sorted(shown, key=lambda pair: pair[1].service):
        made.add_row(
            Text(service.service),
            Text(policy),
            Text(f"{service.done:,} of {service.arrivals:,}"),
            Text(percent(service.attainment, 3) if service.attainment is not None else _DASH),
            _promises(service),
        )
    console.print(made)


def _promises(service: ServiceRun) -> Text:
    said = Text()
    for each in service.promises:
        name = each.name.removesuffix("_s").upper()
        seen = _DASH if each.seen_s is None else f"{number(each.seen_s, 3)} s"
        style = "" if each.kept is not False else "red"
        word = "" if each.kept is not False else " (broken)"
        said.append(", " if said else "")
        said.append(f"{name} {each.at} {seen} of {number(each.target_s)} s{word}", style=style)
    return said


def _variants(console: Console, replay: Replay, *, every: bool) -> None:
    """Replicas of each variant on average, by policy."""
    names = [
        *dict.fromkeys(
            each.variant
            for run in replay.runs
            for each in sorted(run.variants, key=lambda one: one.variant)
            if each.started
        )
    ]
    section(console, "replicas on average (most at once)")
    made = table([Column("variant", right=False), *(Column(run.policy) for run in replay.runs)])
    for name in names if every else names[:_MOST_VARIANTS]:
        made.add_row(Text(name), *(Text(_count(run, name)) for run in replay.runs))
    console.print(made)
    if not every and len(names) > _MOST_VARIANTS:
        console.print(Text(f"and {len(names) - _MOST_VARIANTS} more variants; --all shows them", style="dim"))


def _count(run: PolicyRun, name: str) -> str:
    found = next((each for each in run.variants if each.variant == name and each.started), None)
    return _DASH if found is None else f"{found.mean_replicas:.1f} ({found.most_replicas})"
