"""Ratings from AIConfigurator's step times and our queueing model.

Its static estimates say how long one prefill alone takes and how long a decoding step takes with a few requests in
the batch. With I and O tokens, c = ⌈I/T⌉ prefill iterations of T tokens and a mean context L = I + (O + 1)/2::

    prefill = c·α + (β + γ·(c + 1)/2)·I        decode(n) = α + n·(β + γ·L)

so alpha, beta and gamma follow by non-negative least squares of relative errors, and the queueing model
adds what static estimates leave out: prefills that share iterations with decoding, and waiting.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.optimize import nnls

from models.explanation import Fact, Reason
from models.llm import Precision
from models.performance import Rating, RatingQuestion, Unrated
from models.queueing import QueueingParameters
from planner.performance.aiconfigurator.estimator import Estimator, Setup, Steps, Untold, installed_estimator
from planner.performance.protocol import Knowledge
from planner.performance.queueing import rate_stated

__all__ = ["AiconfiguratorSource", "from_knowledge"]

_BATCHES: Final = (1, 16, 96)
_BACKENDS: Final = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm", "tensorrt-llm": "trtllm"}
_WEIGHTS: Final = {
    Precision.BF16: "bfloat16",
    Precision.FP16: "bfloat16",
    Precision.FP8: "fp8",
    Precision.INT8: "int8_wo",
    Precision.FP4: "nvfp4",
    Precision.INT4: "int4_wo",
}
_KV: Final = {
    Precision.BF16: "bfloat16",
    Precision.FP16: "bfloat16",
    Precision.FP8: "fp8",
    Precision.INT8: "int8",
}


class AiconfiguratorSource:
    """Modeled rates; open where AIConfigurator knows neither LLM nor accelerator type nor precision.

    Args:
        estimator: who is asked; None: the library that is installed.
        max_batch: requests in service at once where nothing else limits them.
    """

    name = "aiconfigurator"

    def __init__(self, estimator: Estimator | None = None, *, max_batch: int = 256) -> None:
        self._estimator = installed_estimator() if estimator is None else estimator
        self._max_batch = max_batch

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        """The rate by step times of AIConfigurator, queueing included."""
        asked = _setup(question)
        answer = self._estimator(asked, _BATCHES) if isinstance(asked, Setup) else asked
        if isinstance(answer, Untold):
            facts: dict[str, Fact] = {
                "llm": question.llm.id,
                "accelerator": question.accelerator.id,
                "aiconfigurator": answer.why,
            }
            return Unrated(reason=Reason.NO_MEASUREMENT, facts=facts, is_open=True)
        chunk = (
            question.variant.engine_arguments.batched_tokens
            or QueueingParameters.model_fields["chunk_tokens"].default
        )
        parameters = _parameters(answer, question, chunk=chunk, max_batch=self._max_batch)
        rated = rate_stated(question.but(variant=question.variant.but(queueing=parameters)))
        if isinstance(rated, Rating):
            return rated.but(
                source=f"{answer.version}; {rated.source.replace('variant.queueing', 'its step times')}"
            )
        return rated if rated is not None else Unrated(reason=Reason.NO_MEASUREMENT, is_open=True)


def from_knowledge(knowledge: Knowledge) -> AiconfiguratorSource:
    """The source of a scenario; it needs nothing that the scenario knows.

    Raises:
        ConfigurationError: AIConfigurator is not installed.
    """
    del knowledge
    return AiconfiguratorSource()


def _setup(question: RatingQuestion) -> Setup | Untold:
    variant, llm = question.variant, question.llm
    backend = _BACKENDS.get((variant.engine or "vllm").lower())
    weights, cache = variant.quantization.weights, variant.quantization.kv_cache
    if backend is None:
        return Untold(f"it does not know the engine {variant.engine}")
    if (weights is not None and weights not in _WEIGHTS) or cache not in _KV:
        return Untold(f"it does not know the precision {weights or cache}")
    parallelism = variant.parallelism
    ranks = parallelism.tp * parallelism.dp
    if llm.moe is not None and ranks % parallelism.ep:
        return Untold(f"experts split {parallelism.ep} ways do not divide {ranks} ranks")
    published = weights is None or weights is llm.precision
    return Setup(
        models=(llm.id, *llm.aliases),
        systems=(question.accelerator.id, *question.accelerator.aliases),
        backend=backend,
        tp=parallelism.tp,
        pp=parallelism.pp,
        dp=parallelism.dp,
        moe=None if llm.moe is None else (ranks // parallelism.ep, parallelism.ep),
        weights=None if published or weights is None else _WEIGHTS[weights],
        kv_cache=_KV[cache],
        input_tokens=question.input_tokens,
        output_tokens=max(2, question.output_tokens),
    )


def _parameters(steps: Steps, question: RatingQuestion, *, chunk: int, max_batch: int) -> QueueingParameters:
    inputs, outputs = question.input_tokens, max(2, question.output_tokens)
    iterations = math.ceil(inputs / chunk)
    context = inputs + (outputs + 1) / 2
    lines = [(float(iterations), float(inputs), inputs * (iterations + 1) / 2)]
    lines += [(1.0, float(batch), batch * context) for batch, _ in steps.decode_s]
    milliseconds = 1000 * np.array([steps.prefill_s, *(seconds for _, seconds in steps.decode_s)])
    weighted = np.array(lines) / milliseconds[:, None]
    # Columns differ by orders of magnitude: scale them before, and the answer after.
    size = np.linalg.norm(weighted, axis=0)
    found, _ = nnls(weighted / size, np.ones(len(milliseconds)))
    # Each data-parallel rank has a batch of its own, and the ranks step together.
    ranks = question.variant.parallelism.dp
    alpha, beta, gamma = (float(value) for value in found / size)
    return QueueingParameters(
        alpha_ms=alpha,
        beta_ms_per_token=beta / ranks,
        gamma_ms_per_token=gamma / ranks,
        max_batch=max_batch * ranks,
        chunk_tokens=chunk,
    )
