"""Screens of one variant: capacity with its origin, memory, and latency over load with the line of the SLO."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from rich.console import Console
from rich.text import Text

from models.performance import Rating, RatingQuestion, Unrated
from models.picture import LoadRow, MemoryPicture, VariantPicture
from models.scenario import Scenario
from planner.cli.screen.layout import Column, bullets, section, table
from planner.wording import number, percent, promises_phrase, reason_sentence

__all__ = ["show_picture", "show_variants"]

_BAR: Final = 40
_GIB: Final = 2.0**30


def show_picture(console: Console, picture: VariantPicture) -> None:
    """All of it."""
    question = picture.question
    variant = question.variant
    weights = variant.quantization.weights or question.llm.precision
    role = "" if variant.role == "both" else f" {variant.role}"
    section(
        console, f"{question.llm.id} on {question.accelerator.id} {variant.parallelism.label} {weights}{role}"
    )
    console.print(
        f"{question.input_tokens:,} tokens in, {question.output_tokens:,} out; {promises_phrase(question.slo)}"
    )
    section(console, "Capacity of one replica")
    _show_answer(console, picture)
    if picture.memory is not None:
        section(console, "Memory of one accelerator")
        _show_memory(console, picture.memory)
    _show_loads(console, picture.loads, question)


def _show_answer(console: Console, picture: VariantPicture) -> None:
    headers = ("req/s rated", "to tau", "TTFT s", "ITL ms", "between")
    made = table([Column("source", right=False), Column("origin", right=False), *map(Column, headers)])
    said = []
    for name, answer in (
        ("planning uses", picture.answer),
        *((each.source, each.answer) for each in picture.answers),
    ):
        if isinstance(answer, Rating):
            made.add_row(name, str(answer.origin), *_figures(answer))
            said.append(f"{name}: {answer.source}")
        else:
            made.add_row(name, "none", "", "", "", "", "")
            said.append(f"{name}: {_why(answer)}")
    console.print(made)
    bullets(console, said)


def _figures(answer: Rating) -> tuple[str, ...]:
    between = answer.interval
    return (
        number(answer.rated_rps, 3),
        number(answer.surge_rps, 3),
        "" if answer.ttft_s is None else number(answer.ttft_s, 3),
        "" if answer.itl_s is None else number(answer.itl_s * 1000, 3),
        "" if between is None else f"{number(between.low_rps, 3)} to {number(between.high_rps, 3)}",
    )


def _why(answer: Unrated) -> str:
    return reason_sentence(answer.reason, answer.facts)


def _show_memory(console: Console, memory: MemoryPicture) -> None:
    parts = (
        ("weights", memory.weight_bytes, "#"),
        ("KV cache", memory.kv_bytes, "="),
        ("activations, graphs, runtime", memory.reserve_bytes, "+"),
        ("left to others", memory.unused_bytes, "."),
    )
    whole = max(memory.memory_bytes, sum(size for _, size, _ in parts))
    bar = "".join(mark * round(_BAR * size / whole) for _, size, mark in parts)
    console.print(Text(f"[{bar[:_BAR].ljust(_BAR)}] {number(memory.memory_bytes / _GIB, 3)} GiB"))
    made = table([Column("", right=False), Column("part", right=False), Column("GiB"), Column("share")])
    for name, size, mark in parts:
        made.add_row(mark, name, number(size / _GIB, 3), percent(size / memory.memory_bytes))
    console.print(made)
    if memory.missing_bytes:
        console.print(
            Text(f"Does not fit: {number(memory.missing_bytes / _GIB, 3)} GiB are missing.", style="bold red")
        )
    elif memory.kv_tokens is not None:
        held = "" if memory.requests is None else f", {memory.requests:,} requests of this shape at once"
        console.print(
            f"KV cache of the replica: {memory.kv_tokens:,.0f} tokens{held} (by formula, or as stated)."
        )


def _show_loads(console: Console, rows: tuple[LoadRow, ...], question: RatingQuestion) -> None:
    if not rows:
        return
    section(console, "Latency over load")
    made = table(
        [
            Column("origin", right=False),
            *map(Column, ("in flight", "req/s", "TTFT s", "ITL ms")),
            Column("", right=False),
        ]
    )
    for (origin, source), group in groupby(rows, key=lambda row: (row.origin, row.source)):
        lines = list(group)
        for index, row in enumerate(lines):
            broken = not row.keeps and (index == 0 or lines[index - 1].keeps)
            if broken and index:
                made.add_row("", "", "", "", "", f"--- SLO: {promises_phrase(question.slo)} ---")
            made.add_row(
                f"{origin}: {source}" if index == 0 else "",
                number(row.in_flight, 3),
                number(row.rps, 3),
                "" if row.ttft_s is None else number(row.ttft_s, 3),
                "" if row.itl_s is None else number(row.itl_s * 1000, 3),
                "" if row.keeps else "outside",
            )
    console.print(made)


def show_variants(console: Console, scenario: Scenario) -> None:
    """A line per variant."""
    section(console, f"Variants of {scenario.name}")
    made = table(
        [
            Column(name, right=False)
            for name in ("variant", "LLM", "accelerator", "parallelism", "weights", "role")
        ]
    )
    for service in scenario.services:
        for variant in service.variants:
            made.add_row(
                f"{service.id}/{variant.id}",
                service.llm,
                variant.accelerator,
                variant.parallelism.label,
                str(variant.quantization.weights or "as published"),
                str(variant.role),
            )
    console.print(made)
