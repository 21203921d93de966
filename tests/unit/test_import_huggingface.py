"""A published ``config.json`` becomes an entry: counts, layers, cache, quantization, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from models.llm import Llm, Precision
from models.variant import Variant
from planner.catalog import load_catalog
from planner.errors import ConfigurationError
from planner.importers.huggingface import import_huggingface
from planner.performance.memory import weight_bytes_per_accelerator
from tests.hf_configs import CONFIGS, write_config

PUBLISHED: Final = {
    # Numbers in the safetensors files of huggingface.co/<owner>/<name>, as the model cards show them.
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-3.1-70B": 70_553_706_496,
    "Mistral-7B-v0.3": 7_248_023_552,
    "Mixtral-8x7B": 46_702_792_704,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-14B": 14_770_033_664,
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-30B-A3B": 30_532_122_624,
    "Qwen3-235B-A22B": 235_093_634_560,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "DeepSeek-V3": 671_026_419_200,
    "Gemma-2-9B": 9_241_705_984,
    "Gemma-7B": 8_537_680_896,
    "Phi-4": 14_659_507_200,
    "Jamba-v0.1": 51_570_323_328,
}
ROUNDED: Final = {
    # Totals and active parameters as the publishers round them, in billions.
    "Qwen3-30B-A3B": (30.5, 3.3),
    "Qwen3-235B-A22B": (235, 22),
    "gpt-oss-120b": (117, 5.1),
    "Mixtral-8x7B": (46.7, 12.9),
    "DeepSeek-V3": (671, 37),
    "Qwen3-Next-80B-A3B": (80, 3),
    "Jamba-v0.1": (52, 12),
    "Nemotron-3-Nano-30B-A3B": (31.6, 3.6),
}


def read(folder: Path, name: str, **changes: Any) -> Llm:
    return import_huggingface(write_config(folder / name, CONFIGS[name] | changes)).llm


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_published_files(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, name).parameters == PUBLISHED[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_totals_and_active_parameters_are_those_that_publishers_name(tmp_path: Path, name: str) -> None:
    llm = read(tmp_path, name)
    total, active = ROUNDED[name]
    assert llm.parameters / 1e9 == pytest.approx(total, rel=0.01)
    # Publishers leave the embedding out, or round down.
    assert active * 0.99 <= (llm.active_parameters or 0) / 1e9 <= active * 1.3


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("Llama-3.1-8B", 131_072),
        ("Qwen2.5-14B", 196_608),
        ("Qwen3-30B-A3B", 98_304),
        ("DeepSeek-V3", 70_272),
        ("gpt-oss-120b", 73_728),
        ("Jamba-v0.1", 4 * 2 * 8 * 128 * 2),
        ("Qwen3-Next-80B-A3B", 12 * 2 * 2 * 256 * 2),
        ("Nemotron-3-Nano-30B-A3B", 6 * 2 * 2 * 128 * 2),
    ],
)
def test_a_token_keeps_what_its_attention_layers_keep(
    tmp_path: Path, name: str, bytes_per_token: int
) -> None:
    llm = read(tmp_path, name)
    assert llm.kv_bytes(1001) - llm.kv_bytes(1000) in {
        bytes_per_token,
        bytes_per_token * (llm.layers - llm.sliding_layers) // llm.layers,
    }
    assert llm.kv_bytes(1) - llm.state_bytes_per_sequence == bytes_per_token


@pytest.mark.parametrize(
    ("name", "sliding", "stateless", "window"),
    [
        ("gpt-oss-20b", 12, 0, 128),
        ("Gemma-2-9B", 21, 0, 4096),
        ("Gemma-3-27B", 52, 0, 1024),
        ("Qwen2.5-7B", 0, 0, None),
        ("Mistral-7B-v0.3", 0, 0, None),
        ("Qwen3-Next-80B-A3B", 0, 36, None),
        ("Jamba-v0.1", 0, 28, None),
        ("Nemotron-3-Nano-30B-A3B", 0, 46, None),
    ],
)
def test_layers_are_told_apart(
    tmp_path: Path, name: str, sliding: int, stateless: int, window: int | None
) -> None:
    llm = read(tmp_path, name)
    assert (llm.sliding_layers, llm.stateless_layers, llm.sliding_window_tokens) == (
        sliding,
        stateless,
        window,
    )


def test_a_window_that_is_set_makes_every_layer_of_mistral_slide(tmp_path: Path) -> None:
    assert read(tmp_path, "Mistral-7B-v0.3", sliding_window=4096).sliding_layers == 32
    qwen = read(tmp_path, "Qwen2.5-7B", use_sliding_window=True, max_window_layers=20)
    assert (qwen.sliding_layers, qwen.sliding_window_tokens) == (8, 131_072)


def test_states_of_layers_without_a_cache(tmp_path: Path) -> None:
    nemotron = read(tmp_path, "Nemotron-3-Nano-30B-A3B")
    conv, recurrent = (4096 + 2 * 8 * 128) * 3, 4096 * 128
    assert nemotron.state_bytes_per_sequence == 23 * (2 * conv + 4 * recurrent)
    qwen = read(tmp_path, "Qwen3-Next-80B-A3B")
    assert qwen.state_bytes_per_sequence == 36 * (2 * 8192 * 3 + 2 * 32 * 128 * 128)
    jamba = read(tmp_path, "Jamba-v0.1")
    assert jamba.state_bytes_per_sequence == 28 * (2 * 8192 * 3 + 2 * 8192 * 16)


def test_heads_may_differ_between_sliding_and_full_layers(tmp_path: Path) -> None:
    fields = {
        "model_type": "mimo_v2_flash",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
    }
    heads = {"head_dim": 24, "v_head_dim": 16, "swa_num_key_value_heads": 4}
    more = {
        "hybrid_layer_pattern": [0, 1],
        "sliding_window": 128,
        "intermediate_size": 256,
        "vocab_size": 1000,
    }
    llm = import_huggingface(write_config(tmp_path, fields | heads | more)).llm
    assert llm.kv_bytes(1) == 2 * (2 * (24 + 16) + 4 * (24 + 24))


def test_sparse_attention_keeps_an_index(tmp_path: Path) -> None:
    index = {"index_n_heads": 64, "index_head_dim": 128}
    plain = read(tmp_path, "DeepSeek-V3", model_type="deepseek_v32", **index)
    assert plain.kv_bytes(10) == 10 * 61 * (576 * 2 + 132)
    shared = ["full"] * 21 + ["shared"] * 40
    some = read(tmp_path, "DeepSeek-V3", model_type="deepseek_v32", indexer_types=shared, **index)
    assert some.kv_bytes(10) == 10 * (61 * 576 * 2 + 21 * 132)


def test_the_catalog_agrees(tmp_path: Path) -> None:
    catalog = load_catalog()
    for name in (
        "Llama-3.1-8B",
        "Qwen2.5-14B",
        "Qwen3-30B-A3B",
        "Qwen3-235B-A22B",
        "gpt-oss-20b",
        "DeepSeek-V3",
    ):
        ours, theirs = read(tmp_path, name), catalog.llm(name)
        assert theirs.parameters == pytest.approx(ours.parameters, rel=1e-3), name
        assert theirs.kv_bytes(5000) == ours.kv_bytes(5000), name
        assert (theirs.layers, theirs.hidden_size) == (ours.layers, ours.hidden_size), name


def bits(llm: Llm) -> float:
    """Bits per parameter on one accelerator."""
    variant = Variant.model_validate({"id": "v", "accelerator": "acc"})
    return weight_bytes_per_accelerator(llm, variant) * 8 / llm.parameters


@pytest.mark.parametrize(
    ("quantization", "precision", "weight_bits"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, Precision.FP8, 8 + 32 / 16_384),
        ({"quant_method": "fbgemm_fp8"}, Precision.FP8, None),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, Precision.INT4, 4 + 20 / 128),
        ({"quant_method": "awq", "w_bit": 4, "group_size": 64}, Precision.INT4, 4 + 20 / 64),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, Precision.INT8, 8.0),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, Precision.INT4, 4.5),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, Precision.INT8, None),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
            },
            Precision.INT4,
            4.5,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            Precision.FP8,
            8.0,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            },
            Precision.FP4,
            4.5,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, Precision.FP4, 4.5),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, Precision.FP8, None),
    ],
)
def test_quantization_is_read(
    tmp_path: Path, quantization: dict[str, Any], precision: Precision, weight_bits: float | None
) -> None:
    llm = read(tmp_path, "Qwen3-8B", quantization_config=quantization)
    assert (llm.precision, llm.weight_bits) == (precision, weight_bits)
    embedding = 151_936 * 4096
    assert embedding < (llm.wide_parameters or 0) < 2.01 * embedding


def test_modules_that_are_not_converted_stay_wide(tmp_path: Path) -> None:
    plain = {"quant_method": "fp8"}
    all_of_it = read(tmp_path, "Qwen3-8B", quantization_config=plain).wide_parameters or 0
    attention = 36 * 4096 * (2 * 4096 + 2 * 1024)
    for patterns in (
        ["self_attn"],
        [f"model.layers.{layer}.self_attn" for layer in range(36)],
        ["model.layers.*.self_attn*"],
        ["re:.*self_attn.*"],
        [r"re:.*\.self_attn\.(q|k|v|o)_proj$"],
        [r"re:model\.layers\.\d+\.self_attn\..*"],
    ):
        more = (
            read(tmp_path, "Qwen3-8B", quantization_config=plain | {"ignore": patterns}).wide_parameters or 0
        )
        assert more - all_of_it == attention, patterns


def test_only_the_experts_of_gpt_oss_are_quantized(tmp_path: Path) -> None:
    llm = read(tmp_path, "gpt-oss-20b")
    assert (llm.precision, llm.weight_bits) == (Precision.FP4, 4.25)
    assert llm.moe is not None
    assert llm.wide_parameters == llm.parameters - (llm.moe.routed_parameters or 0)
    # 12.8 GiB are published (openai/gpt-oss-20b, model.safetensors of 13.76e9 bytes).
    assert bits(llm) * llm.parameters / 8 == pytest.approx(13.76e9, rel=0.01)


def test_modelopt_says_it_in_a_file_beside(tmp_path: Path) -> None:
    said = {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}}
    llm = import_huggingface(write_config(tmp_path, CONFIGS["Qwen3-8B"], beside=said).parent).llm
    assert (llm.precision, llm.weight_bits) == (Precision.FP4, 4.5)
    listed = {f"model.layers.{layer}.mlp.{m}_proj": {"quant_algo": "FP8"} for layer in range(36) for m in ("gate", "up", "down")}  # fmt: skip
    mixed = {"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": listed}}
    llm = import_huggingface(write_config(tmp_path, CONFIGS["Qwen3-8B"], beside=mixed)).llm
    assert llm.parameters - (llm.wide_parameters or 0) == 36 * 3 * 4096 * 12_288


def test_towers_and_heads_that_are_left_out_are_named(tmp_path: Path) -> None:
    assert import_huggingface(write_config(tmp_path / "g", CONFIGS["Gemma-3-27B"])).notes == (
        "the vision tower is not counted",
    )
    assert "multi-token" in import_huggingface(write_config(tmp_path / "d", CONFIGS["DeepSeek-V3"])).notes[0]


def test_the_name_is_as_asked_or_as_the_file_or_folder_says(tmp_path: Path) -> None:
    config = CONFIGS["Qwen3-8B"]
    assert import_huggingface(write_config(tmp_path / "my model", config)).llm.id == "my-model"
    assert import_huggingface(write_config(tmp_path, config), name="mine").llm.id == "mine"
    assert import_huggingface(write_config(tmp_path, config, name="other.json")).llm.id == "other"
    named = config | {"_name_or_path": "Qwen/Qwen3-8B"}
    assert import_huggingface(write_config(tmp_path, named)).llm.id == "Qwen3-8B"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"model_type": "rwkv9"}, ["model_type", "rwkv9", "qwen3"]),
        ({"model_type": "qwen33"}, ["did you mean 'qwen3'"]),
        ({"model_type": None}, ["model_type: found nothing"]),
        ({"model_type": ["qwen3"]}, ["model_type", "a list of 1 items", "a text"]),
        ({"hidden_size": None, "vocab_size": -5}, ["hidden_size: found nothing", "vocab_size: found -5"]),
        ({"hidden_size": "4096"}, ["hidden_size: found '4096'", "a whole number"]),
        ({"hidden_size": True}, ["hidden_size: found True"]),
        ({"hidden_size": 4096.5}, ["hidden_size: found 4096.5"]),
        ({"num_hidden_layers": 10**30}, ["num_hidden_layers"]),
        ({"num_hidden_layers": float("inf")}, ["num_hidden_layers: found inf"]),
        ({"num_hidden_layers": float("nan")}, ["num_hidden_layers: found nan"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers: found 0"]),
        ({"layer_types": ["full_attention"]}, ["layer_types: found 1 items", "36"]),
        ({"layer_types": ["telepathy"] * 36}, ["layer_types: found 'telepathy'"]),
        ({"layer_types": {"a": {}}}, ["layer_types", "an object of 1 fields", "a list"]),
        ({"num_experts": 8}, ["num_experts_per_tok: found nothing"]),
        ({"num_experts": 8, "num_experts_per_tok": 9}, ["found 9", "at most the 8 experts"]),
        ({"quantization_config": {"quant_method": "magic"}}, ["quantization_config.quant_method", "magic", "awq"]),
        ({"quantization_config": "fp8"}, ["quantization_config: found 'fp8'", "an object"]),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, ["quantization_config.bits: found 3"]),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, ["config_groups"]),
        ({"torch_dtype": "complex64"}, ["torch_dtype: found 'complex64'"]),
        ({"tie_word_embeddings": "yes"}, ["tie_word_embeddings: found 'yes'", "true or false"]),
        ({"intermediate_size": None}, ["intermediate_size: found nothing"]),
    ],
)  # fmt: skip
def test_every_problem_is_named(tmp_path: Path, changes: dict[str, Any], found: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, "Qwen3-8B", **changes)
    assert all(phrase in str(caught.value) for phrase in found), str(caught.value)


def test_all_problems_come_in_one_message(tmp_path: Path) -> None:
    wrong = {"hidden_size": -1, "vocab_size": "many", "num_attention_heads": 0, "model_type": "unknown-thing"}
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, "Qwen3-8B", **wrong, quantization_config={"quant_method": "magic"})
    assert len(caught.value.findings) == 5


def fields_of(document: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field of a document, those of objects inside too."""
    for name, value in document.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from fields_of(value, (*path, name))


def with_field(document: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    first, *rest = path
    return document | {first: with_field(document[first], tuple(rest), value) if rest else value}


def findings_of(path: Path) -> list[str]:
    """Fields that are complained about."""
    try:
        import_huggingface(path)
    except ConfigurationError as refused:
        return [finding.path for finding in refused.findings]
    return []


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("wrong", [-1, True, "a", [], 10**12])
def test_one_wrong_field_is_one_finding(tmp_path: Path, name: str, wrong: object) -> None:
    for path in fields_of(CONFIGS[name]):
        found = findings_of(write_config(tmp_path, with_field(CONFIGS[name], path, wrong)))
        assert found in ([], [".".join(path)], [""]), path


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "allowed: JSON"),
        ("{", "allowed: JSON"),
        ("[1, 2]", "a list of 2 items"),
        ("null", "an object"),
        ("[" * 100_000, "JSON"),
        ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "JSON"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str, phrase: str) -> None:
    with pytest.raises(ConfigurationError, match=phrase):
        import_huggingface(write_config(tmp_path, text))


def test_a_missing_file_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        import_huggingface(tmp_path / "config.json")
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        import_huggingface(tmp_path)
