"""Arguments of ``vllm serve`` -> what decides GPUs, memory and capacity (vllm-project/vllm 0.19, engine/arg_utils.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from models.llm import Precision
from models.variant import Role

__all__ = ["Arguments", "Complain", "read_arguments"]

_NAMES: Final = {
    "-tp": "tensor-parallel-size", "-pp": "pipeline-parallel-size", "-dp": "data-parallel-size",
    "-q": "quantization", "-ep": "enable-expert-parallel", "-cc": "compilation-config", "-O": "compilation-config",
    "-dpl": "data-parallel-size-local", "-sc": "speculative-config",
}  # fmt: skip
_FLAGS: Final = frozenset({"enable-expert-parallel", "enforce-eager", "enable-prefix-caching", "enable-eplb"})
_READ: Final = frozenset(
    {
        "model", "tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "quantization", "dtype",
        "kv-cache-dtype", "gpu-memory-utilization", "max-model-len", "max-num-seqs", "max-num-batched-tokens", "block-size",
        "num-redundant-experts", "eplb-config", "compilation-config", "kv-transfer-config", "served-model-name",
    }
)  # fmt: skip
_WEIGHTS: Final = {
    "fp8": Precision.FP8, "fbgemm_fp8": Precision.FP8, "ptpc_fp8": Precision.FP8, "modelopt": Precision.FP8,
    "modelopt_fp4": Precision.FP4, "nvfp4": Precision.FP4, "mxfp4": Precision.FP4, "petit_nvfp4": Precision.FP4,
    "awq": Precision.INT4, "awq_marlin": Precision.INT4, "gptq": Precision.INT4, "gptq_marlin": Precision.INT4,
    "bitsandbytes": Precision.INT4, "moe_wna16": Precision.INT4, "experts_int8": Precision.INT8,
    "compressed-tensors": None, "auto-round": None, "none": None, "gguf": None,
}  # fmt: skip
_CACHE: Final = {
    "auto": Precision.BF16, "bfloat16": Precision.BF16, "float16": Precision.FP16, "fp8": Precision.FP8,
    "fp8_e4m3": Precision.FP8, "fp8_e5m2": Precision.FP8, "fp8_inc": Precision.FP8, "fp8_ds_mla": Precision.FP8,
    "nvfp4": Precision.FP4,
}  # fmt: skip
_DTYPES: Final = {
    "auto": None, "bfloat16": None, "float16": None, "half": None, "float32": Precision.FP32, "float": Precision.FP32,
}  # fmt: skip
_ROLES: Final = {"kv_producer": Role.PREFILL, "kv_consumer": Role.DECODE, "kv_both": Role.BOTH}
_HUMAN: Final = re.compile(r"^(\d+(?:\.\d+)?)([kKmMgG]?)$")
_SCALES: Final = {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}
_MOST: Final = 10**9

Complain = Callable[[str, str, str], None]
"""Takes an argument, what was found there, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What the arguments say; None: nothing."""

    model: str | None = None
    served_as: str | None = None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    expert_parallel: bool = False
    weights: Precision | None = None
    kv_cache: Precision = Precision.BF16
    memory_utilization: float | None = None
    context_tokens: int | None = None
    batched_tokens: int | None = None
    max_requests: int | None = None
    block_tokens: int | None = None
    graphs: bool = True
    redundant_experts: int = 0
    prefix_caching: bool | None = None
    role: Role = Role.BOTH
    other: tuple[str, ...] = field(default=())

    def of_engine(self) -> dict[str, Any]:
        """Fields of :class:`models.engine.EngineArguments`; a block size that is not stated is left to its default."""
        named = ("context_tokens", "batched_tokens", "max_requests", "graphs", "redundant_experts", "prefix_caching", "other")  # fmt: skip
        blocks = {} if self.block_tokens is None else {"block_tokens": self.block_tokens}
        return {name: getattr(self, name) for name in named} | blocks


def read_arguments(words: Sequence[str], complain: Complain) -> Arguments:
    """Read the arguments; the last of several that say the same counts, as in vLLM.

    Args:
        words: what follows ``vllm serve``.
        complain: takes what is wrong; such an argument reads as if it were missing.
    """
    said: dict[str, str | None] = {}
    other: list[str] = []
    for name, value in _pairs(words, complain):
        base, _, inner = name.partition(".")
        if base in _READ and inner and value is not None:
            said[base] = _merged(said.get(base), inner, value)
        elif base in _READ or base.removeprefix("no-") in _FLAGS:
            said[base] = value
        else:
            other.append(f"--{name}" if value is None else f"--{name} {value}")
    reader = _Reader(said, complain)
    weights = reader.choice("quantization", _WEIGHTS)
    return Arguments(
        model=said.get("model"),
        served_as=said.get("served-model-name"),
        tp=reader.count("tensor-parallel-size", most=4096) or 1,
        pp=reader.count("pipeline-parallel-size", most=4096) or 1,
        dp=reader.count("data-parallel-size", most=4096) or 1,
        expert_parallel=reader.flag("enable-expert-parallel") or False,
        weights=weights if weights is not None else reader.choice("dtype", _DTYPES),
        kv_cache=reader.choice("kv-cache-dtype", _CACHE) or Precision.BF16,
        memory_utilization=reader.share("gpu-memory-utilization"),
        context_tokens=reader.context(),
        batched_tokens=reader.count("max-num-batched-tokens", most=10**7),
        max_requests=reader.count("max-num-seqs", most=10**6),
        block_tokens=reader.count("block-size", most=10**5),
        graphs=reader.graphs(),
        redundant_experts=reader.redundant(),
        prefix_caching=reader.flag("enable-prefix-caching"),
        role=reader.role(),
        other=tuple(other),
    )


class _Reader:
    """Values by name, with complaints about those that cannot be."""

    def __init__(self, said: dict[str, str | None], complain: Complain) -> None:
        self._said = said
        self._complain = complain

    def count(self, name: str, *, most: int = _MOST, least: int = 1) -> int | None:
        """A whole number, also as ``32k`` (1000) and ``32K`` (1024)."""
        if name not in self._said:
            return None
        text = self._said[name] or ""
        found = _HUMAN.match(text) if len(text) <= 20 else None  # noqa: PLR2004 - digits of a number
        value = None if found is None else float(found[1]) * _SCALES[found[2]]
        if value is None or value != int(value) or not least <= value <= most:
            self._complain(f"--{name}", repr(text), f"a whole number from {least} to {most:,}")
            return None
        return int(value)

    def context(self) -> int | None:
        """The longest context; ``auto`` and -1 leave it to the LLM."""
        return None if self._said.get("max-model-len") in {"auto", "-1"} else self.count("max-model-len")

    def share(self, name: str) -> float | None:
        """A share above 0, at most 1."""
        if name not in self._said:
            return None
        try:
            value = float(self._said[name] or "")
        except ValueError:
            value = 0.0
        if not 0 < value <= 1:
            self._complain(f"--{name}", repr(self._said[name]), "a number above 0, at most 1")
            return None
        return value

    def choice(
        self, name: str, allowed: dict[str, Precision | None] | dict[str, Precision]
    ) -> Precision | None:
        """One of the names that vLLM knows."""
        value = self._said.get(name)
        if name not in self._said:
            return None
        if (value or "").casefold() not in allowed:
            self._complain(f"--{name}", repr(value), ", ".join(allowed))
            return None
        return allowed[(value or "").casefold()]

    def flag(self, name: str) -> bool | None:
        """Given, given with ``no-`` before it, or as a text; the latter where both are."""
        found: bool | None = None
        for key, value in self._said.items():
            if key in {name, f"no-{name}"}:
                found = (value or "true").casefold() not in {"false", "0", "no"}
                found = not found if key.startswith("no-") else found
        return found

    def graphs(self) -> bool:
        """Whether CUDA graphs are captured."""
        if self.flag("enforce-eager"):
            return False
        text = self._said.get("compilation-config")
        if text is None or text.strip().isdigit():
            return text is None or text.strip() != "0"
        config = self._json("compilation-config")
        return str(config.get("cudagraph_mode", "")).upper() != "NONE" and str(config.get("mode", "")) != "0"

    def redundant(self) -> int:
        """Redundant experts, under either name."""
        direct = self.count("num-redundant-experts", least=0, most=10**5)
        if direct is not None:
            return direct
        value = self._json("eplb-config").get("num_redundant_experts", 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**5:
            self._complain(
                "--eplb-config", f"num_redundant_experts = {value!r}", "a whole number from 0 to 100,000"
            )
            return 0
        return value

    def role(self) -> Role:
        """The phase that a transfer of KV cache leaves to it."""
        said = self._json("kv-transfer-config").get("kv_role", "kv_both")
        if not isinstance(said, str) or said not in _ROLES:
            self._complain("--kv-transfer-config", f"kv_role = {said!r}", ", ".join(_ROLES))
            return Role.BOTH
        return _ROLES[said]

    def _json(self, name: str) -> dict[str, Any]:
        text = self._said.get(name)
        if name not in self._said:
            return {}
        try:
            value = json.loads(text or "")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            self._complain(f"--{name}", repr((text or "")[:60]), "a JSON object")
            return {}
        return value


def _pairs(words: Sequence[str], complain: Complain) -> Iterator[tuple[str, str | None]]:
    """Names with their values; the model may stand without a name."""
    rest = list(words)
    if rest and not rest[0].startswith("-"):
        yield "model", rest.pop(0)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "--":
            complain(word[:60], "a word without a name", "--name value")
            continue
        name, sign, value = word.partition("=")
        stem, dot, inner = name.partition(".")
        long = _NAMES.get(stem, stem.lstrip("-")).replace("_", "-") + dot + inner
        if sign:
            yield long, value
        elif long.removeprefix("no-") in _FLAGS or not rest or _is_name(rest[0]):
            if long in _READ:
                complain(word, "no value", f"{word} VALUE")
            else:
                yield long, None
        else:
            yield long, rest.pop(0)
            # Lists, such as several served names, belong to the same argument.
            while rest and not _is_name(rest[0]):
                extra = rest.pop(0)
                if long not in _READ:
                    yield long, extra


def _is_name(word: str) -> bool:
    return word.startswith("-") and not _is_number(word)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _merged(text: str | None, inner: str, value: str) -> str:
    """``--name.key value`` as an object of its own, or added to the one that is there."""
    try:
        whole = json.loads(text) if text else {}
    except ValueError:
        whole = {}
    try:
        read = json.loads(value)
    except ValueError:
        read = value
    return json.dumps({**(whole if isinstance(whole, dict) else {}), inner.replace("-", "_"): read})
