"""Asking AIConfigurator for step times: one process-wide library, no network, each question once."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Final, Protocol

from planner.errors import ConfigurationError

__all__ = ["Estimator", "Setup", "Steps", "Untold", "installed_estimator"]

_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_PACKAGE, _CORE = "aiconfigurator", "aiconfigurator_core"
_STRIDE: Final = 128
"""Decoding steps between two that are looked up: within 1 % of every 32nd, in half the time."""
_FIRST_LINE: Final = 160


@dataclass(frozen=True, slots=True)
class Setup:
    """One replica and one request shape, in AIConfigurator's words.

    Attributes:
        models: names of the LLM, the first that it knows is taken.
        systems: names of the accelerator type, the same.
        backend: ``vllm``, ``sglang`` or ``trtllm``.
        tp: tensor parallel.
        pp: pipeline parallel.
        dp: attention data parallel.
        moe: (tensor, expert) parallel of the experts; None: a dense LLM.
        weights: precision of matrix products in its words; None: as the LLM is published.
        kv_cache: precision of the KV cache in its words.
        input_tokens: input length.
        output_tokens: output length.
    """

    models: tuple[str, ...]
    systems: tuple[str, ...]
    backend: str
    tp: int
    pp: int
    dp: int
    moe: tuple[int, int] | None
    weights: str | None
    kv_cache: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Steps:
    """Step times of one data-parallel rank.

    Attributes:
        prefill_s: one request alone, all of its input.
        decode_s: mean decoding step by number of requests in the batch.
        version: of AIConfigurator, its tables and what they are of.
    """

    prefill_s: float
    decode_s: tuple[tuple[int, float], ...]
    version: str


@dataclass(frozen=True, slots=True)
class Untold:
    """Why it cannot tell."""

    why: str


class Estimator(Protocol):
    """Step times of a setup at some batches, or why there are none."""

    def __call__(self, setup: Setup, batches: tuple[int, ...]) -> Steps | Untold:
        """Ask. Equal questions give equal answers."""


@lru_cache(maxsize=1)
def installed_estimator() -> Estimator:
    """The library that is installed.

    Raises:
        ConfigurationError: it is not.
    """
    if find_spec(_PACKAGE) is None or find_spec(_CORE) is None:
        raise ConfigurationError(
            "performance source 'aiconfigurator' needs the Python package aiconfigurator: pip install 'fleetplan[aiconfigurator]'"
        )
    return lru_cache(maxsize=4096)(_estimate)


def _estimate(setup: Setup, batches: tuple[int, ...]) -> Steps | Untold:
    model = next((name for name in setup.models if name in _packaged_models()), None)
    system = next((name for name in setup.systems if name in _packaged_systems()), None)
    if model is None:
        # It would look for the configuration on the network.
        return Untold(f"it ships no configuration of {setup.models[0]}")
    if system is None:
        return Untold(f"it has no tables of {setup.systems[0]}")
    with _quiet():
        try:
            return _steps(_library(), setup, batches, names=(model, system))
        except (
            ArithmeticError,
            AssertionError,
            LookupError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as fault:
            return Untold(f"{type(fault).__name__}: {str(fault).strip()[:_FIRST_LINE]}")
        except SystemExit:
            return Untold("it ended without a word")


def _library() -> Callable[..., Any]:
    from aiconfigurator.cli.api import cli_estimate

    estimate: Callable[..., Any] = cli_estimate
    return estimate


def _steps(
    estimate: Callable[..., Any], setup: Setup, batches: tuple[int, ...], *, names: tuple[str, str]
) -> Steps | Untold:
    fixed: dict[str, Any] = {
        "mode": "static",
        "backend_name": setup.backend,
        "isl": setup.input_tokens,
        "osl": setup.output_tokens,
        "tp_size": setup.tp,
        "pp_size": setup.pp,
        "attention_dp_size": setup.dp,
        "gemm_quant_mode": setup.weights,
        "kvcache_quant_mode": setup.kv_cache,
        "stride": max(1, min(_STRIDE, setup.output_tokens // 4)),
    }
    if setup.moe is not None:
        fixed |= {"moe_tp_size": setup.moe[0], "moe_ep_size": setup.moe[1], "moe_quant_mode": setup.weights}
    answers = [estimate(*names, batch_size=batch, **fixed) for batch in batches]
    prefill, decode = float(answers[0].ttft) / 1000, [float(answer.tpot) / 1000 for answer in answers]
    if not all(math.isfinite(value) and value > 0 for value in (prefill, *decode)):
        return Untold("its tables do not hold this setup")
    version = (
        f"aiconfigurator {_version()}, {setup.backend} {answers[0].raw.get('version', '?')} on {names[1]}"
    )
    return Steps(prefill, tuple(zip(batches, decode, strict=True)), version)


def _version() -> str:
    from importlib.metadata import version

    return version(_PACKAGE)


@lru_cache(maxsize=1)
def _packaged_models() -> frozenset[str]:
    """LLMs whose configuration ships with it, as Hugging Face names them."""
    names = (each.name for each in (files(_CORE) / "model_configs").iterdir())
    ending = "_config.json"
    return frozenset(name.removesuffix(ending).replace("--", "/") for name in names if name.endswith(ending))


@lru_cache(maxsize=1)
def _packaged_systems() -> frozenset[str]:
    names = (each.name for each in (files(_CORE) / "systems").iterdir())
    return frozenset(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


@contextlib.contextmanager
def _quiet() -> Any:  # noqa: ANN401 - a context manager's generator
    """No network and no words of its own while it is asked; afterwards everything as before."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    disabled = logging.root.manager.disable
    os.environ.update(_OFFLINE)
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(disabled)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
