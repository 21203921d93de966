"""A run of vLLM that was recorded request by request -> its requests, its engine and when everything happened.

``NAME_requests.jsonl`` has a request per line: ``input_toks``, ``output_toks``, ``arrival_time`` (the client's wall
clock, s) and ``queued_ts``, ``scheduled_ts``, ``first_token_ts``, ``last_token_ts`` (the engine's own clock, s).
``NAME_meta.json`` beside it has the options of the engine. Nothing says how the two clocks stand to one another; the
request that was queued soonest after it came is taken to have been queued at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.errors import CatalogError, Finding
from planner.importers.huggingface.reading import read_json
from planner.performance.profile import read_text

__all__ = ["EngineOptions", "RecordedRun", "read_recorded_run"]

Floats = NDArray[np.float64]

_ENDING: Final = "_requests.jsonl"
_KEYS: Final = (
    "input_toks", "output_toks", "arrival_time", "queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How the engine ran; defaults are what vLLM V1 settles on where nothing is said.

    Attributes:
        max_num_seqs: requests in one step of a rank.
        max_num_batched_tokens: tokens in one step of a rank.
        tensor_parallel: accelerators of a rank.
        ranks: data-parallel ranks.
        block_tokens: of a KV block.
        kv_blocks: of the KV cache of a rank; None: not recorded.
        prefix_caching: whether prefixes are kept.
        chunked_prefill: whether prompts may be cut.
        async_scheduling: whether a step is composed while the one before it runs.
    """

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    tensor_parallel: int = 1
    ranks: int = 1
    block_tokens: int = 16
    kv_blocks: int | None = None
    prefix_caching: bool = True
    chunked_prefill: bool = True
    async_scheduling: bool = True


_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "max_num_seqs": ("engine_kwargs.max_num_seqs", "resolved_config.scheduler_config.max_num_seqs"),
    "max_num_batched_tokens": (
        "engine_kwargs.max_num_batched_tokens",
        "resolved_config.scheduler_config.max_num_batched_tokens",
    ),
    "tensor_parallel": ("engine_kwargs.tensor_parallel_size",),
    "ranks": ("engine_kwargs.data_parallel_size",),
    "block_tokens": ("kv_cache.block_size", "resolved_config.cache_config.block_size"),
    "kv_blocks": ("kv_cache.num_gpu_blocks", "resolved_config.cache_config.num_gpu_blocks"),
    "prefix_caching": (
        "kv_cache.enable_prefix_caching",
        "resolved_config.cache_config.enable_prefix_caching",
    ),
    "chunked_prefill": ("resolved_config.scheduler_config.enable_chunked_prefill",),
    "async_scheduling": ("resolved_config.scheduler_config.async_scheduling",),
}


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """Requests in order of arrival, n of them; times in s from the first arrival.

    Attributes:
        name: of the run: the file without its ending.
        llm: as the engine was told.
        engine_version: of vLLM; empty: not recorded.
        options: of the engine.
        input_tokens: int32 (n,).
        output_tokens: int32 (n,).
        arrival_s: float64 (n,), when the client sent it.
        queued_s: float64 (n,), when the engine took it in, between two steps.
        scheduled_s: float64 (n,), when its first step was composed.
        first_s: float64 (n,), first token.
        last_s: float64 (n,), last token.
    """

    name: str
    llm: str
    engine_version: str
    options: EngineOptions
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    arrival_s: Floats
    queued_s: Floats
    scheduled_s: Floats
    first_s: Floats
    last_s: Floats

    def __len__(self) -> int:
        return len(self.arrival_s)


def read_recorded_run(path: Path) -> RecordedRun:
    """Read ``NAME_requests.jsonl`` and ``NAME_meta.json`` beside it.

    Raises:
        CatalogError: a file is not there or not of this kind, or lines or options cannot be; lists all of them.
    """
    findings: list[Finding] = []
    columns = _columns(path, findings)
    meta_path = path.with_name(path.name.removesuffix(_ENDING) + "_meta.json")
    meta = read_json(meta_path)
    options = _options(meta, str(meta_path), findings)
    if findings:
        raise CatalogError.from_findings(findings)
    inputs, outputs, arrival, *engine = columns[:, np.argsort(columns[2], kind="stable")]
    # The clocks differ by what lies between arrival and queue where nothing was in the way.
    offset = float((engine[0] - arrival).min()) + float(arrival[0])
    queued, scheduled, first, last = (times - offset for times in engine)
    return RecordedRun(
        name=path.name.removesuffix(_ENDING),
        llm=str(meta.get("model", "")),
        engine_version=str(meta.get("vllm_version", "")),
        options=options,
        input_tokens=inputs.astype(np.int32),
        output_tokens=outputs.astype(np.int32),
        arrival_s=arrival - arrival[0],
        queued_s=queued,
        scheduled_s=scheduled,
        first_s=first,
        last_s=last,
    )


def _columns(path: Path, findings: list[Finding]) -> Floats:
    """Numbers by column, in the order of ``_KEYS``; findings where there are none."""
    rows: list[list[float]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            row = _row(line)
            if isinstance(row, str):
                findings.append(Finding(str(path), number, "", row, f"an object with {', '.join(_KEYS)}"))
            else:
                rows.append(row)
    if not rows and not findings:
        findings.append(Finding(str(path), None, "", "no request", "a request per line"))
    return np.array(rows, float).reshape(-1, len(_KEYS)).T


def _row(line: str) -> list[float] | str:
    """The numbers of a request, or what is wrong with it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(record, dict):
        return "no object"
    values = [record.get(key) for key in _KEYS]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(_KEYS) or not all(map(math.isfinite, numbers)):
        lacking = [
            key for key, value in zip(_KEYS, values, strict=True) if not isinstance(value, int | float)
        ]
        return f"no number for {', '.join(lacking)}" if lacking else "a number that is none"
    inputs, outputs, _, queued, scheduled, first, last = numbers
    if inputs < 1 or outputs < 1:
        return f"{inputs:g} input and {outputs:g} output tokens"
    if not queued <= scheduled <= first <= last:
        return "times of the engine that go back"
    return numbers


def _options(meta: Mapping[str, Any], file: str, findings: list[Finding]) -> EngineOptions:
    values: dict[str, Any] = {}
    for option in fields(EngineOptions):
        found = next(((at, v) for at in _PLACES[option.name] if (v := _at(meta, at)) is not None), None)
        if found is None:
            continue
        place, value = found
        wants_flag = isinstance(option.default, bool)
        fits = isinstance(value, bool) if wants_flag else type(value) is int and value > 0
        if not fits:
            allowed = "true or false" if wants_flag else "a whole number above 0"
            findings.append(Finding(file, None, place, json.dumps(value)[:80], allowed))
        values[option.name] = value
    return EngineOptions(**values)


def _at(meta: Mapping[str, Any], place: str) -> object:
    found: object = meta
    for key in place.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
