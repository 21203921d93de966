"""Which recorded runs there are, and the twin of their engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from models.simulation import Outcome, ReplicaSpec, ServiceSpec, TwinSpec
from models.twin_timing import TableTiming, Timing
from models.variant import Parallelism, Variant
from planner.errors import ConfigurationError
from planner.importers.vllm.kernels import read_kernel_times
from planner.importers.vllm.recorded import RecordedRun, read_recorded_run
from planner.performance.memory import kv_capacity_tokens
from planner.simulation.twin import Twin
from planner.traces.requests import RequestChunk

if TYPE_CHECKING:
    from planner.catalog import Catalog

__all__ = ["MEASURED_RUNS", "Engine", "MeasuredRun", "Timeline"]

Floats = NDArray[np.float64]

_FOLDER: Final = Path("perf", "vllm_runs")
_SERVICE: Final = "recorded"
_CALL_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """When requests got their tokens, measured or replayed; n requests in order of arrival.

    Attributes:
        input_tokens: int32 (n,).
        output_tokens: int32 (n,).
        arrival_s: float64 (n,).
        started_s: float64 (n,), when their first step was composed.
        first_s: float64 (n,).
        last_s: float64 (n,).
    """

    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    arrival_s: Floats
    started_s: Floats
    first_s: Floats
    last_s: Floats

    def part(self, requests: slice) -> Timeline:
        """Some of the requests."""
        return Timeline(
            self.input_tokens[requests],
            self.output_tokens[requests],
            self.arrival_s[requests],
            self.started_s[requests],
            self.first_s[requests],
            self.last_s[requests],
        )

    @property
    def ttft_s(self) -> Floats:
        """From arrival to first token."""
        waits: Floats = self.first_s - self.arrival_s
        return waits

    @property
    def itl_s(self) -> Floats:
        """Mean time per output token after the first, of requests with more than one."""
        several = self.output_tokens > 1
        means: Floats = (self.last_s - self.first_s)[several] / (self.output_tokens[several] - 1)
        return means


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run that is compared.

    Attributes:
        name: of the files, without their endings.
        llm: in the catalog, where the engine was told another name.
        accelerator: in the catalog.
        kernels: name of the tables of kernel times; None: none were measured.
    """

    name: str
    llm: str
    accelerator: str
    kernels: str | None = None

    def engine(self, data: Path, catalog: Catalog) -> Engine:
        """Read the run from the folder of test data.

        Raises:
            ConfigurationError: files are not there or not of their kind, or the LLM does not fit the accelerator.
        """
        run = read_recorded_run(data / _FOLDER / f"{self.name}_requests.jsonl")
        return Engine(self, run, _kv_blocks(self, run, catalog))

    def kernel_times(self, data: Path, catalog: Catalog) -> TableTiming | None:
        """Step times from kernels; None: they were not measured."""
        if self.kernels is None:
            return None
        return read_kernel_times(data / _FOLDER / self.kernels, layers=catalog.llm(self.llm).layers)


MEASURED_RUNS: Final = (
    MeasuredRun(
        name="RTXPRO6000_Llama-3.1-8B_vllm",
        llm="Llama-3.1-8B",
        accelerator="RTX-PRO-6000",
        kernels="prof_RTXPRO6000_meta-llama_Llama-3.1-8B_bf16_tp1",
    ),
    MeasuredRun(
        name="RTXPRO6000_Qwen3-30B-A3B-Instruct-2507_vllm", llm="Qwen3-30B-A3B", accelerator="RTX-PRO-6000"
    ),
)


@dataclass(frozen=True, slots=True)
class Engine:
    """A recorded run with the size of its KV cache.

    Attributes:
        declared: which run.
        run: what was recorded.
        kv_blocks: of all ranks: as recorded, else as the memory model has it.
    """

    declared: MeasuredRun
    run: RecordedRun
    kv_blocks: int

    @property
    def parallelism(self) -> Parallelism:
        """Of the engine; experts are spread over all ranks."""
        return _parallelism(self.run)

    @property
    def measured(self) -> Timeline:
        """What the engine did."""
        run = self.run
        return Timeline(
            run.input_tokens, run.output_tokens, run.arrival_s, run.scheduled_s, run.first_s, run.last_s
        )

    def fleet(self, timing: Timing, *, looks_ahead: bool | None = None) -> TwinSpec:
        """The engine as one replica. Ranks wait for each other in every step, so they are one batch with their seats.

        Args:
            timing: of a step.
            looks_ahead: whether a step is composed while another runs; None: as in the run.
        """
        options = self.run.options
        replica = ReplicaSpec(
            variant="engine",
            service=_SERVICE,
            timing=timing,
            kv_blocks=self.kv_blocks,
            block_size=options.block_tokens,
            max_num_seqs=options.max_num_seqs * options.ranks,
            max_num_batched_tokens=options.max_num_batched_tokens * options.ranks,
            chunked_prefill=options.chunked_prefill,
            async_scheduling=options.async_scheduling if looks_ahead is None else looks_ahead,
            prefix_caching=options.prefix_caching,
            gpus=options.tensor_parallel * options.ranks,
        )
        return TwinSpec(services=(ServiceSpec(name=_SERVICE),), replicas=(replica,))

    def replayed(self, timing: Timing, *, looks_ahead: bool | None = None) -> Timeline:
        """What the twin does with the same requests; arguments as of :meth:`fleet`.

        Raises:
            ConfigurationError: the engine's KV cache cannot hold a request that the engine has served.
        """
        run = self.run
        chunk = RequestChunk(run.arrival_s, run.input_tokens, run.output_tokens)
        twin = Twin(self.fleet(timing, looks_ahead=looks_ahead), iter([chunk]))
        while not twin.idle:
            twin.advance(twin.now_s + _CALL_S)
        result = twin.finish()
        result.check_conservation()
        rows = result.requests
        failed = int(np.sum(rows["outcome"] != Outcome.DONE))
        if failed:
            raise ConfigurationError(f"{failed} requests of {run.name} do not fit {self.kv_blocks} blocks")
        return Timeline(
            run.input_tokens,
            run.output_tokens,
            run.arrival_s,
            rows["start_s"],
            rows["first_token_s"],
            rows["end_s"],
        )


def _parallelism(run: RecordedRun) -> Parallelism:
    options = run.options
    return Parallelism(tp=options.tensor_parallel, dp=options.ranks, ep=options.ranks)


def _kv_blocks(declared: MeasuredRun, run: RecordedRun, catalog: Catalog) -> int:
    options = run.options
    if options.kv_blocks is not None:
        return options.kv_blocks * options.ranks
    variant = Variant.model_validate(
        {
            "id": declared.name,
            "accelerator": declared.accelerator,
            "parallelism": _parallelism(run),
            "engine_arguments": {
                "max_requests": options.max_num_seqs,
                "batched_tokens": options.max_num_batched_tokens,
            },
        }
    )
    fit = kv_capacity_tokens(catalog.llm(declared.llm), catalog.accelerator(declared.accelerator), variant)
    if not fit.kv_tokens:
        raise ConfigurationError(f"{declared.llm} does not fit {declared.accelerator} as {run.name} ran it")
    return fit.kv_tokens // options.block_tokens
