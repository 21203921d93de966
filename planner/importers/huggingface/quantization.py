"""How published weights are stored: ``quantization_config`` and ModelOpt's ``hf_quant_config.json``.

Read are bits, group size and the modules that stay at 16 bit; how activations are quantized decides no memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from models.llm import Precision
from planner.importers.huggingface.parts import Kind, Part
from planner.importers.huggingface.reading import Config

__all__ = ["Storage", "storage_of", "wide_parameters"]

_DTYPES: Final = {
    "bfloat16": Precision.BF16, "float16": Precision.FP16, "half": Precision.FP16, "float32": Precision.FP32,
    "float": Precision.FP32, "float8_e4m3fn": Precision.FP8,
}  # fmt: skip
_SCALE_BITS: Final = 16
_FOUR: Final = 4
_EIGHT: Final = 8
_NVFP4_BITS: Final = 4 + 8 / 16
_MXFP4_BITS: Final = 4 + 8 / 32
_ALWAYS_WIDE: Final = frozenset({Kind.EMBEDDING, Kind.HEAD, Kind.SMALL})
_UNREADABLE: Final = re.compile(r"[\[\]{}+?|()]")
_CHOICE: Final = re.compile(r"\(([^()]*)\)")
_MOST_PATTERNS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Storage:
    """How the weights of a checkpoint are stored.

    Attributes:
        precision: of those that are quantized, or of all.
        bits: of one weight with its share of scales; None: those of the precision.
        wide: patterns of modules that stay at 16 bit.
        only: modules that are quantized, with all above them, where the checkpoint lists them; empty: it does not.
        only_experts: routed experts are quantized and nothing else.
        head: the output head is quantized too.
        notes: what was not understood.
    """

    precision: Precision
    bits: float | None = None
    wide: tuple[str, ...] = ()
    only: frozenset[str] = frozenset()
    only_experts: bool = False
    head: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_quantized(self) -> bool:
        """Whether weights are stored in fewer than 16 bit."""
        return self.precision not in {Precision.BF16, Precision.FP16, Precision.FP32}


def storage_of(config: Config, outer: Config, beside: Config | None) -> Storage:
    """How the weights are stored.

    Args:
        config: of the text model.
        outer: of the document; the same where there is no other.
        beside: ``hf_quant_config.json`` in the same folder; None: there is none.
    """
    quantization = config.inner("quantization_config", "compression_config")
    quantization = quantization or outer.inner("quantization_config", "compression_config")
    if quantization is None and beside is not None:
        quantization = beside.inner("quantization")
    if quantization is None:
        return _plain(config, outer)
    if quantization.has("quant_algo") or quantization.text("quant_method") == "modelopt":
        return _modelopt(quantization)
    method = (quantization.text("quant_method") or "").casefold()
    read = _METHODS.get(method)
    if read is None:
        known = ", ".join([*_METHODS, "modelopt"])
        quantization.find("quant_method", repr(method[:60]), allowed=known, follows=("quant_method",))
        return Storage(Precision.BF16)
    return read(quantization)


def wide_parameters(parts: Iterable[Part], storage: Storage) -> int:
    """Parameters that stay at 16 bit in a quantized checkpoint."""
    is_wide = _matcher(storage.wide)
    return sum(part.parameters for part in parts if _stays_wide(part, storage, is_wide))


def _stays_wide(part: Part, storage: Storage, is_wide: Callable[[str], bool]) -> bool:
    if storage.only:
        return part.module not in storage.only
    if part.kind is Kind.HEAD and storage.head:
        return is_wide(part.module)
    if part.kind in _ALWAYS_WIDE or (storage.only_experts and part.kind is not Kind.ROUTED):
        return True
    return is_wide(part.module)


def _plain(config: Config, outer: Config) -> Storage:
    said = next(
        ((each, field) for each in (config, outer) for field in ("dtype", "torch_dtype") if each.text(field)),
        None,
    )
    name = "bfloat16" if said is None else (said[0].text(said[1]) or "").removeprefix("torch.")
    if name == "auto":
        name = "bfloat16"
    if said is not None and name not in _DTYPES:
        said[0].find(said[1], repr(name[:60]), allowed=", ".join(_DTYPES))
    return Storage(_DTYPES.get(name, Precision.BF16))


def _fp8(config: Config) -> Storage:
    block = config.items("weight_block_size")
    bits = None
    if block and all(isinstance(side, int) and 1 <= side <= 10**6 for side in block):
        size = 1
        for side in block:
            size *= side
        bits = _EIGHT + 32 / size
    return Storage(Precision.FP8, bits, _ignored(config))


def _grouped(config: Config) -> Storage:
    """AWQ and GPTQ: integers in groups, each with a scale and a zero."""
    bits = config.count("bits", "w_bit", most=16)
    if bits is None:
        config.find("bits", "nothing", allowed="4 or 8", follows=("w_bit",))
    return Storage(
        _integer(config, bits or _FOUR), _with_scales(config, bits or _FOUR, zero=True), _ignored(config)
    )


def _mxfp4(config: Config) -> Storage:
    return Storage(Precision.FP4, _MXFP4_BITS, _ignored(config), only_experts=True)


def _bitsandbytes(config: Config) -> Storage:
    four = config.flag("load_in_4bit", False)
    skipped = config.words("llm_int8_skip_modules") or ()
    # One 32-bit scale for 64 numbers.
    return (
        Storage(Precision.INT4, _FOUR + 32 / 64, skipped) if four else Storage(Precision.INT8, None, skipped)
    )


def _compressed(config: Config) -> Storage:
    """Groups of modules; where several differ the widest is counted."""
    groups = config.inner("config_groups")
    found: list[Storage] = []
    for name in sorted(groups.data) if groups is not None else ():
        group = groups.inner(name) if groups is not None else None
        weights = None if group is None else group.inner("weights")
        if weights is not None:
            found.append(_compressed_group(weights))
    if not found:
        config.find("config_groups", "no group with weights", allowed="groups of modules and their weights")
        return Storage(Precision.BF16)
    widest = max(found, key=lambda each: each.bits or 0.0)
    notes = ("weights of several precisions: the widest is counted for all",) if len({*found}) > 1 else ()
    return Storage(widest.precision, widest.bits, _ignored(config), head=True, notes=notes)


def _compressed_group(config: Config) -> Storage:
    bits = config.count("num_bits", most=16) or _EIGHT
    if config.text("type") == "float":
        if bits == _FOUR:
            return Storage(Precision.FP4, _with_scales(config, _FOUR, scale=_EIGHT, usual=16))
        if bits != _EIGHT:
            config.find("num_bits", str(bits), allowed="4 or 8")
        return Storage(Precision.FP8, float(_EIGHT))
    zero = not config.flag("symmetric", True)
    return Storage(_integer(config, bits), _with_scales(config, bits, zero=zero))


def _modelopt(config: Config) -> Storage:
    algorithm = (config.text("quant_algo") or "").upper()
    wide = _ignored(config)
    if "FP4" in algorithm:
        bits = _MXFP4_BITS if "MXFP4" in algorithm else _NVFP4_BITS
        return Storage(Precision.FP4, bits, wide, head=True)
    if algorithm.startswith("FP8"):
        return Storage(Precision.FP8, None, wide, head=True)
    if algorithm.startswith("W4A"):
        return Storage(Precision.INT4, _with_scales(config, _FOUR), wide, head=True)
    if algorithm == "MIXED_PRECISION":
        return _mixed(config)
    config.find("quant_algo", repr(algorithm[:60]), allowed="FP8, NVFP4, MXFP4, W4A16 or MIXED_PRECISION")
    return Storage(Precision.BF16)


def _mixed(config: Config) -> Storage:
    """A precision for each module that is listed; those that are not stay wide."""
    layers = config.inner("quantized_layers")
    named = {
        name: str(value.get("quant_algo", "")).upper()
        for name, value in (layers.data.items() if layers is not None else ())
        if isinstance(value, dict)
    }
    if not named:
        config.find("quantized_layers", "no module", allowed="a precision for each quantized module")
    routed = {algorithm for name, algorithm in named.items() if ".experts" in name} or {*named.values()}
    four = bool(routed) and all("FP4" in algorithm for algorithm in routed)
    precision = Precision.FP4 if four else Precision.FP8
    several = len({*named.values()}) > 1
    notes = (f"weights of several precisions: all that are quantized are counted as {precision}",)
    return Storage(
        precision,
        _NVFP4_BITS if four else None,
        only=_with_all_above(named),
        notes=notes if several else (),
    )


def _with_all_above(names: Iterable[str]) -> frozenset[str]:
    """Names from ``layers.`` on, and every name above them."""
    above: set[str] = set()
    for name in names:
        start = name.find("layers.")
        pieces = name[max(start, 0) :].split(".")
        above.update(".".join(pieces[:end]) for end in range(1, len(pieces) + 1))
    return frozenset(above)


_METHODS: Final[dict[str, Callable[[Config], Storage]]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "awq": _grouped,
    "gptq": _grouped,
    "auto-round": _grouped,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
}


def _integer(config: Config, bits: int) -> Precision:
    if bits not in {_FOUR, _EIGHT}:
        config.find("bits", str(bits), allowed="4 or 8")
    return Precision.INT4 if bits == _FOUR else Precision.INT8


def _with_scales(
    config: Config, bits: int, *, zero: bool = False, scale: int = _SCALE_BITS, usual: int = 128
) -> float:
    group = config.count("group_size", least=-1, most=10**6)
    size = usual if group is None else group
    return float(bits) if size <= 0 else bits + (scale + (bits if zero else 0)) / size


def _ignored(config: Config) -> tuple[str, ...]:
    """Modules that stay at 16 bit, under any of the names for them."""
    names = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules")
    found = [pattern for name in names for pattern in config.words(name) or ()]
    if len(found) > _MOST_PATTERNS:
        config.find("ignore", f"{len(found)} patterns", allowed=f"at most {_MOST_PATTERNS:,}")
        return ()
    return tuple(found)


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a module is named by one of the patterns: a name, a name above it, a part of it, or with wildcards."""
    plain: set[str] = set()
    wild: list[str] = []
    for pattern in patterns:
        for form in _forms(pattern):
            if "*" in form:
                wild.append(form)
            else:
                plain.add(form)

    def matches(module: str) -> bool:
        pieces = module.split(".")
        above = {".".join(pieces[:end]) for end in range(1, len(pieces) + 1)}
        if plain & (above | set(pieces)):
            return True
        return any(fnmatchcase(module, form) for form in wild)

    return matches


def _forms(pattern: str) -> Iterator[str]:
    """A pattern as wildcards, from ``layers.`` on; a regular expression of the usual kind is written as one."""
    is_regular = pattern.startswith("re:")
    forms = [pattern.removeprefix("re:")]
    if is_regular:
        while (choice := _CHOICE.search(forms[0])) is not None and len(forms) <= 64:  # noqa: PLR2004
            forms = [
                form[: found.start()] + option + form[found.end() :]
                for form in forms
                if (found := _CHOICE.search(form)) is not None
                for option in found[1].removeprefix("?:").split("|")
            ]
            del choice
        forms = [form for each in forms for form in _unregular(each)]
    for form in forms:
        start = form.find("layers.")
        yield form[start:] if start > 0 and "*" not in form[:start] else form.removeprefix("model.")


def _unregular(text: str) -> Iterator[str]:
    ends = text.endswith("$")
    text = text.removeprefix("^").removesuffix("$")
    for digits in (r"\d+", r"\d*", "[0-9]+"):
        text = text.replace(digits, "*")
    text = text.replace(".*", "*").replace("\\.", ".").replace("\\", "")
    if not _UNREADABLE.search(text):
        yield text if ends or text.endswith("*") else f"{text}*"
