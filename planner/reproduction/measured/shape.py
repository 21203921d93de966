"""The form of a step time that is fitted, and where its parameters start: at what the accelerator could do at best.

t = base + experts·(share of experts that the tokens of the step touch) + request·(decoding requests)
    + kv·(their KV tokens) + [prefill + token·(prefill tokens) + pair·(attended pairs)], the brackets in steps that prefill.

A batch of T tokens leaves each expert idle with probability (1 - k/E)^(T/ranks), as in the roofline. A dense LLM has no
term for experts. Ranks of one engine wait for each other in every step, so that times of a rank are those of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from models.llm import Precision
from models.twin_timing import Curve, Grid, TableTiming
from models.variant import Parallelism, Role
from planner.performance.roofline.work import Setup, work_of

if TYPE_CHECKING:
    from models.hardware import Accelerator
    from models.llm import Llm
    from planner.reproduction.measured.runs import Floats

__all__ = ["StepShape", "shape_of"]

_TOKENS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 16_384.0)
_CHUNKS: Final = (0.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16_384.0)
_REQUESTS: Final = 512.0
_CONTEXT: Final = 8192.0
_PROMPT: Final = 1000
_HOST_S: Final = 3e-3
_REQUEST_S: Final = 5e-5
_PREFILL_S: Final = 1e-2
"""What the host adds to a step, to each request of it, and to a step that no recorded graph is there for: the order of
magnitude, where the fit starts."""


@dataclass(frozen=True, slots=True)
class StepShape:
    """Step times with open parameters.

    Attributes:
        start: s, by name; the order of the parameters.
        idle_share: probability that one token leaves an expert idle; 1: there are no experts.
        ranks: of the engine.
    """

    start: dict[str, float]
    idle_share: float
    ranks: int

    def timing(self, values: Floats) -> TableTiming:
        """Step times with these parameters, in the order of ``start``."""
        named = dict(zip(self.start, values.tolist(), strict=True))
        base, experts = named["base"], named.get("experts", 0.0)
        touched = tuple(base + experts * (1.0 - self.idle_share ** (each / self.ranks)) for each in _TOKENS)
        request, kv = named["request"], named["kv"]
        decode = ((0.0, 0.0), (_REQUESTS * request, _REQUESTS * (request + kv * _CONTEXT)))
        prefill = tuple(
            tuple(
                named["prefill"] + named["token"] * chunk + named["pair"] * chunk * (before + chunk / 2)
                for before in (0.0, _CONTEXT)
            )
            for chunk in _CHUNKS
        )
        return TableTiming(
            tokens=Curve(at=_TOKENS, seconds=touched),
            decode=Grid(rows=(0.0, _REQUESTS), columns=(0.0, _CONTEXT), seconds=decode),
            prefill=Grid(rows=_CHUNKS, columns=(0.0, _CONTEXT), seconds=prefill),
        )


def shape_of(llm: Llm, accelerator: Accelerator, parallelism: Parallelism) -> StepShape:
    """The form for an LLM on an accelerator.

    Raises:
        ValueError: the roofline lacks a figure of either.
    """
    work = work_of(
        Setup(
            llm=llm,
            accelerator=accelerator,
            parallelism=parallelism,
            weights=llm.precision,
            kv_cache=Precision.BF16,
            role=Role.BOTH,
            input_tokens=_PROMPT,
            output_tokens=1,
            cached_share=0.0,
        )
    )
    start = {
        "base": work.weights_s + _HOST_S,
        "request": _REQUEST_S,
        "kv": work.kv_s / work.held_tokens / parallelism.dp,
        "prefill": _PREFILL_S,
        "token": work.flops_s + work.expert_flops_s,
        "pair": work.attention_s / (0.5 * _PROMPT**2),
    }
    if work.experts_s > 0:
        start["experts"] = work.experts_s
    return StepShape(start, work.idle_share, parallelism.dp)
