"""Where each number of a candidate is from: given, measured or modeled, by whom, and how far from a measured point."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from models.performance import Interval, Rating, Unrated
from models.picture import CandidatePicture, PlacePicture, SourceAnswer
from models.problem import CostUnit
from models.variant import Variant
from planner.catalog import source_descriptions
from planner.settings import load_settings
from planner.ui.words import spaced
from planner.wording import distance_phrase, money, number, percent, quantity, reason_sentence, time_span

__all__ = ["code_meanings", "provenance_rows", "source_rows"]

Row = dict[str, str]

_GIB: Final = 2.0**30
_CODE: Final = re.compile(r"\b[A-Z]+\d+\b")
_CODED: Final = ("accelerator.memory_bytes", "accelerator.tdp_w", "accelerator.usd_per_h", "llm.parameters")
_DEFAULT: Final = "variant.startup_s, whose default this is"


def provenance_rows(found: CandidatePicture, place: PlacePicture | None) -> list[Row]:
    """A line per number: value, origin, source, and what was measured nearest."""
    rows = [*_rates(found), *_mixed(found, place), *_sizes(found), *_placed(found, place)]
    return [{name: spaced(text) for name, text in row.items()} for row in rows]


def code_meanings(found: CandidatePicture) -> dict[str, str]:
    """What the source codes stand for that this candidate's numbers carry, sorted."""
    answers = (found.picture.answer, *(each.answer for each in (*found.picture.answers, *found.unasked)))
    texts = [each.source for each in answers if isinstance(each, Rating)]
    texts += [curve.source for curve in found.curves]
    texts += [found.codes.get(name, "") for name in _CODED]
    used = {word for text in texts for word in _CODE.findall(text)}
    known = source_descriptions(load_settings().catalog_dir)
    return {code: known[code] for code in sorted(used) if code in known}


def _row(figure: str, value: str, origin: str, *, source: str, nearest: str = "") -> Row:
    return {
        "figure": figure,
        "value": value,
        "origin": origin,
        "nearest measured": nearest,
        "source": source,
    }


def _rates(found: CandidatePicture) -> Iterator[Row]:
    answer, question = found.picture.answer, found.picture.question
    if isinstance(answer, Unrated):
        return
    nearest = distance_phrase((question.input_tokens, question.output_tokens), found.nearest)
    figures = (
        ("rated rate of this shape", quantity(answer.rated_rps, "req/s")),
        ("surge rate of this shape", quantity(answer.surge_rps, "req/s")),
        ("TTFT at the rated rate", None if answer.ttft_s is None else quantity(answer.ttft_s, "s")),
        ("ITL at the rated rate", None if answer.itl_s is None else f"{number(answer.itl_s * 1000)} ms"),
    )
    for figure, value in figures:
        if value is not None:
            yield _row(figure, value, str(answer.origin), source=answer.source, nearest=nearest)
    if answer.interval is not None:
        yield _row(
            "where the rate lies", _interval(answer.interval), str(answer.origin), source=answer.source
        )
    if answer.kv_tokens_per_rps is not None:
        value = f"{number(answer.kv_tokens_per_rps)} tokens per req/s"
        little = f"time a request stays × tokens it holds (Little); {answer.source}"
        yield _row("KV cache in use", value, str(answer.origin), source=little)


def _mixed(found: CandidatePicture, place: PlacePicture | None) -> Iterator[Row]:
    """What planning uses where a service sends several shapes."""
    if place is None or not place.candidates:
        return
    candidate = place.candidates[0]
    source = candidate.source.removeprefix("rate: ").partition("; cost: ")[0]
    for figure, value in (("rated", candidate.rated_rps), ("surge", candidate.surge_rps)):
        name = f"{figure} rate of the service's own mix"
        yield _row(name, quantity(value, "req/s"), str(candidate.origin), source=source)


def _sizes(found: CandidatePicture) -> Iterator[Row]:
    question, memory = found.picture.question, found.picture.memory
    if memory is None:
        return
    stated = question.variant.capacity.kv_tokens is not None
    own = "the scenario"
    yield _row(
        "memory of a GPU",
        f"{number(memory.memory_bytes / _GIB, 3)} GiB",
        "given",
        source=found.codes.get("accelerator.memory_bytes", own),
    )
    parameters = f"{number(question.llm.parameters / 1e9, 3)}e9 parameters"
    weights = f"{parameters} ({found.codes.get('llm.parameters', own)}) × bytes of their precision ÷ GPUs"
    yield _row("weights per GPU", f"{number(memory.weight_bytes / _GIB, 3)} GiB", "modeled", source=weights)
    reserve = question.variant.activation_reserve_bytes is not None
    yield _row(
        "reserve per GPU",
        f"{number(memory.reserve_bytes / _GIB, 3)} GiB",
        "given" if reserve else "modeled",
        source="variant.activation_reserve_bytes" if reserve else "shapes of the LLM and engine arguments",
    )
    if memory.kv_tokens is not None and not memory.missing_bytes:
        yield _row(
            "KV capacity of a replica",
            quantity(memory.kv_tokens, "tokens"),
            "given" if stated else "modeled",
            source="variant.capacity" if stated else "memory - weights - reserve, in whole blocks",
        )


def _placed(found: CandidatePicture, place: PlacePicture | None) -> Iterator[Row]:
    """Price, power and start-up of a replica in a pool."""
    variant = found.picture.question.variant
    if place is not None and place.cost is not None:
        in_dollars = place.cost_unit is CostUnit.USD_PER_H
        value = f"{money(place.cost)}{' $/h' if in_dollars else ''}"
        yield _row("price of a replica", value, "given", source=_coded(place.cost_source, found, "usd_per_h"))
    if place is not None and place.power_w is not None:
        modeled = "modeled" in place.power_source
        measured = "measured" in place.power_source
        origin = "modeled" if modeled else "measured" if measured else "given"
        source = _coded(place.power_source, found, "tdp_w")
        yield _row("power of a replica", quantity(place.power_w, "W"), origin, source=source)
    stated = variant.startup_s != Variant.model_fields["startup_s"].default
    yield _row(
        "time to start",
        time_span(variant.startup_s),
        "given",
        source="variant.startup_s" if stated else _DEFAULT,
    )


def _coded(source: str, found: CandidatePicture, field: str) -> str:
    """The source with the code of the catalog's figure, where it is the catalog's."""
    from_catalog = source.startswith(("TDP", "list price"))
    code = found.codes.get(f"accelerator.{field}")
    if not from_catalog:
        return source
    return f"{source} ({code or 'the scenario'})"


def source_rows(found: CandidatePicture) -> list[Row]:
    """What planning uses, and what each source says on its own."""
    own = found.picture
    rows = [_said(SourceAnswer(source="planning uses", answer=own.answer), asked=True)]
    rows += [_said(each, asked=True) for each in own.answers]
    rows += [_said(each, asked=False) for each in found.unasked]
    return [{name: spaced(text) for name, text in row.items()} for row in rows]


def _said(each: SourceAnswer, *, asked: bool) -> Row:
    answer = each.answer
    name = each.source if asked else f"{each.source} (not asked by this scenario)"
    if not isinstance(answer, Rating):
        why = reason_sentence(answer.reason, answer.facts)
        return {**dict.fromkeys(_COLUMNS, ""), "source": name, "origin": "none", "from": why}
    return {
        "source": name,
        "origin": str(answer.origin),
        "rated, req/s": number(answer.rated_rps, 3),
        "to τ, req/s": number(answer.surge_rps, 3),
        "TTFT, s": "" if answer.ttft_s is None else number(answer.ttft_s, 3),
        "ITL, ms": "" if answer.itl_s is None else number(answer.itl_s * 1000, 3),
        "between": "" if answer.interval is None else _interval(answer.interval),
        "from": answer.source,
    }


_COLUMNS: Final = (
    "source", "origin", "rated, req/s", "to τ, req/s", "TTFT, s", "ITL, ms", "between", "from",
)  # fmt: skip


def _interval(between: Interval) -> str:
    ends = f"{number(between.low_rps, 3)} to {number(between.high_rps, 3)} req/s"
    return f"{ends} ({percent(between.probability)} of measured runs)"
