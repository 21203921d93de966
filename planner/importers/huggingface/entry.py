"""A local ``config.json`` -> an entry of the catalog. Parameters are counted from the shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from models.llm import Llm, Precision, bytes_of
from planner.errors import ConfigurationError
from planner.importers.huggingface.families import family_of
from planner.importers.huggingface.layers import Mixer, layers_of
from planner.importers.huggingface.parts import Kind, Part, Shapes, parts, shapes_of
from planner.importers.huggingface.quantization import Storage, storage_of, wide_parameters
from planner.importers.huggingface.reading import Config, read_config

__all__ = ["ImportedLlm", "import_huggingface"]

_TOWERS: Final = ("vision_config", "audio_config", "speech_config")
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._:/@#+-]+")


@dataclass(frozen=True, slots=True)
class ImportedLlm:
    """An entry, and what it leaves out.

    Attributes:
        llm: the entry.
        notes: what was not counted or not understood, for people.
    """

    llm: Llm
    notes: tuple[str, ...] = ()


def import_huggingface(path: Path, *, name: str | None = None) -> ImportedLlm:
    """The entry that a configuration describes.

    Args:
        path: ``config.json`` or the folder that holds it; ``hf_quant_config.json`` beside it is read too.
        name: of the entry; None: the end of ``_name_or_path``, else the name of the folder.

    Raises:
        ConfigurationError: the file cannot be read, its architecture is not known, or values are missing or
            cannot be; lists all of it.
    """
    file = path / "config.json" if path.is_dir() else path
    outer = read_config(file)
    text = outer.inner("text_config", "llm_config", "language_config") or outer
    if outer.findings:
        # All that is asked below would be looked for in the wrong object.
        raise ConfigurationError.from_findings(outer.findings)
    aside = file.parent / "hf_quant_config.json"
    beside = read_config(aside) if aside.is_file() else None
    family = family_of(text)
    shapes = shapes_of(_with_outer(text, outer), family, layers_of(text))
    everything = list(parts(shapes))
    storage = storage_of(text, outer, beside)
    fields = _fields(shapes, everything, storage) | {"id": _name(name, file, outer)}
    findings = [*outer.findings, *(beside.findings if beside is not None else ())]
    if findings:
        raise ConfigurationError.from_findings(findings)
    return ImportedLlm(_llm(fields, outer), (*storage.notes, *_left_out(outer, text)))


def _with_outer(text: Config, outer: Config) -> Config:
    """The text model's fields, with what only the document around them says."""
    if text is outer or text.has("tie_word_embeddings") or not outer.has("tie_word_embeddings"):
        return text
    data = {**text.data, "tie_word_embeddings": outer.data["tie_word_embeddings"]}
    return Config(text.file, data, text.findings, text.path)


def _llm(fields: dict[str, Any], outer: Config) -> Llm:
    try:
        return Llm.model_validate(fields)
    except ValidationError as cause:
        for error in cause.errors(include_url=False):
            where = ".".join(str(step) for step in error["loc"] if step not in ("gqa", "mla"))
            outer.find(
                "", f"figures that give {where} = {str(error.get('input'))[:60]}", allowed=error["msg"]
            )
        raise ConfigurationError.from_findings(outer.findings) from cause


def _fields(shapes: Shapes, everything: Sequence[Part], storage: Storage) -> dict[str, Any]:
    total = sum(part.parameters for part in everything)
    routed = sum(part.parameters for part in everything if part.kind is Kind.ROUTED)
    config = shapes.config
    fields: dict[str, Any] = {
        "parameters": total,
        "layers": shapes.layers,
        "attention": _attention(shapes),
        "hidden_size": shapes.hidden,
        "query_heads": shapes.heads,
        "vocabulary": shapes.vocabulary,
        "max_context_tokens": config.count("max_position_embeddings", "max_sequence_length", "n_positions"),
        "precision": storage.precision,
        **_windows(shapes),
        **_states(shapes),
    }
    if shapes.dense:
        fields["feed_forward_size"] = shapes.dense
    if shapes.experts and routed:
        idle = routed // shapes.experts * (shapes.experts - shapes.visited)
        fields["active_parameters"] = max(1, total - idle)
        fields["moe"] = {
            "experts": shapes.experts,
            "experts_per_token": shapes.visited,
            "shared_experts": _shared_experts(shapes),
            "routed_parameters": routed,
            "expert_size": shapes.expert,
        }
    if storage.is_quantized:
        fields["wide_parameters"] = wide_parameters(everything, storage) or None
        fields["weight_bits"] = storage.bits
    return fields


def _attention(shapes: Shapes) -> dict[str, Any]:
    """What full-attention layers keep; those of sliding windows where there is no other."""
    config = shapes.config
    if shapes.is_latent:
        index = _index(shapes) if config.has("index_head_dim") else {}
        latent = {
            "kv_lora_rank": config.need("kv_lora_rank"),
            "rope_head_dim": config.need("qk_rope_head_dim"),
        }
        return {"kind": "mla", **latent, **index}
    heads, dim = shapes.kv_heads, shapes.head_dim
    if config.has("global_head_dim") and Mixer.FULL in shapes.mixers:
        heads = config.count("num_global_key_value_heads") or heads
        return {"kind": "gqa", "kv_heads": heads, "head_dim": config.need("global_head_dim")}
    values = {"value_head_dim": shapes.value_dim} if shapes.value_dim != dim else {}
    return {"kind": "gqa", "kv_heads": heads, "head_dim": dim, **values}


def _index(shapes: Shapes) -> dict[str, Any]:
    """The sparse-attention index; layers may share that of another one."""
    kinds = shapes.config.words("indexer_types", shapes.layers)
    own = None if kinds is None else kinds.count("full")
    index = {"index_head_dim": shapes.config.need("index_head_dim")}
    return index if own is None else index | {"index_layers": own}


def _windows(shapes: Shapes) -> dict[str, Any]:
    """Sliding-window and chunked layers. A chunk holds no more than a window of its length."""
    config, sliding = shapes.config, shapes.mixers.count(Mixer.SLIDING)
    if not sliding:
        return {}
    window = config.count("sliding_window", "attention_chunk_size", "sliding_window_size")
    if window is None:
        config.find("sliding_window", "nothing", allowed="tokens; there are sliding-window layers")
        return {}
    fields: dict[str, Any] = {"sliding_window_tokens": window, "sliding_layers": sliding}
    if config.has("swa_num_key_value_heads"):
        dim = config.count("swa_head_dim") or shapes.head_dim
        value = config.count("swa_v_head_dim") or dim
        other = {"kv_heads": config.need("swa_num_key_value_heads"), "head_dim": dim}
        fields["sliding_attention"] = other | ({"value_head_dim": value} if value != dim else {})
    elif config.has("global_head_dim"):
        fields["sliding_attention"] = {"kv_heads": shapes.kv_heads, "head_dim": shapes.head_dim}
    return fields


def _states(shapes: Shapes) -> dict[str, Any]:
    """Layers without a KV cache, and the state of those that mix tokens all the same."""
    config = shapes.config
    delta, mamba = shapes.mixers.count(Mixer.DELTA), shapes.mixers.count(Mixer.MAMBA)
    idle = shapes.mixers.count(Mixer.NONE)
    if not delta + mamba + idle:
        return {}
    wide = config.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype") == "float32"
    number = int(bytes_of(Precision.FP32 if wide else Precision.BF16))
    conv = int(bytes_of(Precision.BF16))
    per_sequence = 0
    if delta:
        short, long = _delta_state(config)
        per_sequence += delta * (conv * short + number * long)
    if mamba:
        short, long = _mamba_state(shapes)
        per_sequence += mamba * (conv * short + number * long)
    return {"stateless_layers": delta + mamba + idle, "state_bytes_per_sequence": per_sequence}


def _delta_state(config: Config) -> tuple[int, int]:
    """Numbers of the convolution's and of the recurrent state of one gated-delta layer."""
    keys, values = config.need("linear_key_head_dim"), config.need("linear_value_head_dim")
    key_heads, value_heads = config.need("linear_num_key_heads"), config.need("linear_num_value_heads")
    width = 2 * key_heads * keys + value_heads * values
    return width * (config.need("linear_conv_kernel_dim") - 1), value_heads * keys * values


def _mamba_state(shapes: Shapes) -> tuple[int, int]:
    """Numbers of the convolution's and of the recurrent state of one state-space layer."""
    config = shapes.config
    if config.has("mamba_num_heads"):
        inner, state = (
            config.need("mamba_num_heads") * config.need("mamba_head_dim"),
            config.need("ssm_state_size"),
        )
        width = inner + 2 * (config.count("n_groups") or 1) * state
        return width * ((config.count("conv_kernel") or 4) - 1), inner * state
    inner = (config.count("mamba_expand") or 2) * shapes.hidden
    return inner * ((config.count("mamba_d_conv") or 4) - 1), inner * (config.count("mamba_d_state") or 16)


def _shared_experts(shapes: Shapes) -> int:
    """Experts that every token visits; a wider one counts as one."""
    stated = shapes.config.count("n_shared_experts", least=0, most=10**4)
    return stated if stated is not None else int(shapes.shared > 0)


def _name(name: str | None, file: Path, outer: Config) -> str:
    if name is not None:
        return name
    said = outer.data.get("_name_or_path")
    last = said.rstrip("/").rpartition("/")[2] if isinstance(said, str) else ""
    stem = file.parent.resolve().name if file.name == "config.json" else file.stem
    return _NOT_IN_A_NAME.sub("-", last or stem).strip("-._/:@#+") or "llm"


def _left_out(outer: Config, text: Config) -> tuple[str, ...]:
    towers = [name.removesuffix("_config") for name in _TOWERS if outer.has(name)]
    found = []
    if towers:
        found.append(f"the {' and '.join(towers)} tower is not counted")
    if text.has("num_nextn_predict_layers") or text.has("mtp_num_hidden_layers"):
        found.append("heads of multi-token prediction are not counted")
    return tuple(found)
