"""Screens of the catalog: lists, and one entry with unit and source of every figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from models.hardware import Accelerator
from models.llm import Llm
from models.performance import MeasuredPoint
from models.value import Value
from models.variant import Role
from planner.catalog import Catalog
from planner.cli.screen.layout import Column, bullets, section, table
from planner.wording import money, number, quantity

__all__ = ["show_accelerators", "show_entry", "show_llms", "show_profile", "show_profiles"]


def show_accelerators(console: Console, catalog: Catalog) -> None:
    """A line per accelerator."""
    headers = ("memory GiB", "GB/s", "TDP W", "$/h")
    made = table([Column("accelerator", right=False), Column("vendor", right=False), *map(Column, headers)])
    for each in catalog.accelerators.values():
        made.add_row(
            each.id,
            each.vendor,
            number(each.memory_bytes / 2**30, 3),
            "?" if each.memory_bandwidth is None else f"{each.memory_bandwidth / 1e9:,.0f}",
            number(each.tdp_w),
            money(each.usd_per_h),
        )
    _show(console, "Accelerators", made)


def show_llms(console: Console, catalog: Catalog) -> None:
    """A line per LLM."""
    headers = ("parameters 1e9", "KV KiB/token", "context tokens")
    made = table([Column("LLM", right=False), *map(Column, headers), Column("weights", right=False)])
    for each in catalog.llms.values():
        context = "?" if each.max_context_tokens is None else f"{each.max_context_tokens:,}"
        kv = number(each.kv_bytes(1) / 1024, 3)
        made.add_row(each.id, number(each.parameters / 1e9), kv, context, str(each.precision))
    _show(console, "LLMs (KV cache at 16 bit)", made)


def show_profiles(console: Console, catalog: Catalog) -> None:
    """A line per profile table."""
    made = table([Column("profile", right=False), *map(Column, ("rows", "LLMs", "accelerators"))])
    for name, points in catalog.profiles.items():
        llms, accelerators = {point.llm for point in points}, {point.accelerator for point in points}
        made.add_row(name, str(len(points)), str(len(llms)), str(len(accelerators)))
    _show(console, "Profiles (measured)", made)


def show_entry(
    console: Console, entry: Accelerator | Llm, *, sources: Mapping[str, str], meanings: Mapping[str, str]
) -> None:
    """Every figure of an entry with its unit and the code of its source; below, what the codes stand for."""
    section(console, entry.id)
    made = table([Column("figure", right=False), Column("value", right=False), Column("source", right=False)])
    for path, value, unit in _figures(entry):
        made.add_row(Text(path), _written(value, unit), Text(sources.get(path, "")))
    console.print(made)
    codes = sorted(set(sources.values()) & meanings.keys())
    if codes:
        section(console, "Sources")
        bullets(console, [f"{code}: {meanings[code]}" for code in codes])


def show_profile(console: Console, name: str, points: tuple[MeasuredPoint, ...]) -> None:
    """Every row of a profile table."""
    figures = ("tokens in/out", "users", "req/s", "TTFT s", "ITL ms", "source")
    made = table([Column("one replica", right=False), *map(Column, figures)])
    for point in points:
        role = "" if point.role is Role.BOTH else f" {point.role}"
        made.add_row(
            f"{point.llm}{role} {point.accelerator} {point.parallelism.label} {point.precision}",
            f"{point.input_tokens}/{point.output_tokens}",
            str(point.concurrency),
            number(point.rps, 3),
            number(point.ttft_s, 3),
            number(point.itl_s * 1000, 3),
            point.source,
        )
    _show(console, name, made)


def _show(console: Console, title: str, content: object) -> None:
    section(console, title)
    console.print(content)


def _figures(entry: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Path, value and unit of every field that is known, nested ones with a dotted path."""
    for name in type(entry).model_fields:
        value = getattr(entry, name)
        if isinstance(value, Value):
            yield from _figures(value, f"{prefix}{name}.")
        elif value is not None and value != () and name != "id":
            yield f"{prefix}{name}", value, _unit(type(entry), name)


def _unit(noun: type[BaseModel], name: str) -> str:
    described = noun.model_json_schema()["properties"].get(name, {})
    options = [described, *described.get("anyOf", ())]
    return next((option["unit"] for option in options if option.get("unit", "1") != "1"), "")


def _written(value: object, unit: str) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value)
    if isinstance(value, int) and not unit:
        return f"{value:,}"
    return quantity(value, unit) if isinstance(value, int | float) else str(value)
