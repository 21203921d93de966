"""Command lines and pods that start vLLM become variants; what cannot be read or cannot be is named at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from models.llm import Precision
from models.variant import Role
from planner.catalog import Catalog, load_catalog
from planner.errors import ConfigurationError
from planner.importers.vllm import ImportedVariant, import_vllm
from planner.importers.vllm.shell import UnreadableTextError, started


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def of_text(folder: Path, catalog: Catalog, text: str) -> ImportedVariant:
    path = folder / "start.sh"
    path.write_text(text, encoding="utf-8")
    (variant,) = import_vllm([path], catalog, accelerator="H100")
    return variant


def a_pod(*args: str, gpus: Any = None, **container: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"image": "vllm/vllm-openai:v0.19.0", "args": list(args)} | container
    if gpus is not None:
        fields["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {"containers": [fields]}


def a_deployment(pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "chat", "namespace": "serving"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"template": {"spec": pod}} | spec,
    }


def of_yaml(folder: Path, catalog: Catalog, *documents: Any) -> tuple[ImportedVariant, ...]:
    path = folder / "pods.yaml"
    path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return import_vllm([path], catalog, accelerator="H100")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vllm serve a/b -tp 2", ["a/b", "-tp", "2"]),
        ("vllm serve a \\\n  --x 1 \\\n  --y", ["a", "--x", "1", "--y"]),
        ("# first\nvllm serve a --x 1 # why\necho done", ["a", "--x", "1"]),
        ("set -e; cd /x && exec vllm serve a | tee log", ["a"]),
        ("vllm serve a --j '{\"k\": [1, 2]}'", ["a", "--j", '{"k": [1, 2]}']),
        ('vllm serve a --j "{\\"k\\": 1}"', ["a", "--j", '{"k": 1}']),
        ("TP=4 vllm serve a -tp $TP", ["a", "-tp", "4"]),
        ("export TP=4\nvllm serve a -tp ${TP}", ["a", "-tp", "4"]),
        ("A=1\nB=${A}2\nvllm serve a -tp $B", ["a", "-tp", "12"]),
        ("vllm serve a -tp ${TP:-8}", ["a", "-tp", "8"]),
        ("vllm serve ''", [""]),
        ("vllm serve a#b", ["a#b"]),
        ("python3 -m vllm.entrypoints.openai.api_server --model a", ["--model", "a"]),
        ("docker run --gpus all vllm/vllm-openai vllm serve a", ["a"]),
        ("/opt/venv/bin/vllm serve a", ["a"]),
    ],
)
def test_a_shell_text_is_read_as_a_shell_reads_it(text: str, words: list[str]) -> None:
    (start,) = started(text)
    assert list(start.arguments) == words


def test_a_text_may_start_several_and_a_quote_must_end() -> None:
    assert len(started("vllm serve a &\nvllm serve b\nwait")) == 2
    assert started("echo vllm") == []
    with pytest.raises(UnreadableTextError):
        started("vllm serve 'a")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {"parallelism.gpus": 1, "quantization.weights": None, "memory_utilization": 0.9}),
        ("--tensor-parallel-size 4 --pipeline-parallel-size=2", {"parallelism.label": "TP4·PP2"}),
        ("-tp 2 -dp 4 --enable-expert-parallel", {"parallelism.label": "TP2·DP4·EP8"}),
        ("-tp 2 -tp 4", {"parallelism.tp": 4}),
        ("--tensor_parallel_size 4", {"parallelism.tp": 4}),
        ("--quantization fp8", {"quantization.weights": Precision.FP8}),
        ("-q awq_marlin", {"quantization.weights": Precision.INT4}),
        ("--quantization compressed-tensors", {"quantization.weights": None}),
        ("--dtype float32", {"quantization.weights": Precision.FP32}),
        ("--dtype bfloat16", {"quantization.weights": None}),
        ("--kv-cache-dtype fp8_e5m2", {"quantization.kv_cache": Precision.FP8}),
        ("--gpu-memory-utilization 0.95", {"memory_utilization": 0.95}),
        ("--max-model-len 32k", {"engine_arguments.context_tokens": 32_000}),
        ("--max-model-len 32K", {"engine_arguments.context_tokens": 32_768}),
        ("--max-model-len auto", {"engine_arguments.context_tokens": None}),
        ("--max-num-seqs 64 --max-num-batched-tokens 4096", {"engine_arguments.max_requests": 64, "engine_arguments.batched_tokens": 4096}),
        ("--block-size 32", {"engine_arguments.block_tokens": 32}),
        ("--enforce-eager", {"engine_arguments.graphs": False}),
        ("--no-enforce-eager", {"engine_arguments.graphs": True}),
        ("-cc.cudagraph_mode none", {"engine_arguments.graphs": False}),
        ("--compilation-config '{\"cudagraph_mode\": \"NONE\"}'", {"engine_arguments.graphs": False}),
        ("-O 3", {"engine_arguments.graphs": True}),
        ("--eplb-config '{\"num_redundant_experts\": 32}'", {"engine_arguments.redundant_experts": 32}),
        ("--eplb-config.num_redundant_experts 8", {"engine_arguments.redundant_experts": 8}),
        ("--no-enable-prefix-caching", {"engine_arguments.prefix_caching": False}),
        ("--kv-transfer-config '{\"kv_role\": \"kv_producer\"}'", {"role": Role.PREFILL}),
        ("--port 8000 --trust-remote-code --x a b", {"engine_arguments.other": ("--port 8000", "--trust-remote-code", "--x a", "--x b")}),
    ],
)  # fmt: skip
def test_arguments_decide_the_variant(
    tmp_path: Path, catalog: Catalog, arguments: str, expected: dict[str, Any]
) -> None:
    variant = of_text(tmp_path, catalog, f"vllm serve meta-llama/Llama-3.1-8B {arguments}").variant
    for path, value in expected.items():
        found: Any = variant
        for step in path.split("."):
            found = getattr(found, step)
        assert found == value, path


def test_the_llm_is_found_by_alias_and_else_told(tmp_path: Path, catalog: Catalog) -> None:
    known = of_text(tmp_path, catalog, "vllm serve meta-llama/Llama-3.1-8B-Instruct")
    assert (known.llm, known.service, known.notes) == ("Llama-3.1-8B", "Llama-3.1-8B", ())
    local = of_text(tmp_path, catalog, "vllm serve /models/Qwen3-8B --served-model-name fast")
    assert (local.llm, local.service) == ("Qwen3-8B", "fast")
    other = of_text(tmp_path, catalog, "vllm serve me/mine")
    assert (other.llm, other.service) == ("me/mine", "mine")
    assert "config.json" in other.notes[0]


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("vllm serve", ["model: found nothing"]),
        ("vllm serve a -tp zero", ["--tensor-parallel-size: found 'zero'"]),
        ("vllm serve a -tp -1", ["--tensor-parallel-size: found '-1'"]),
        ("vllm serve a -tp 9999999999999999999999", ["--tensor-parallel-size"]),
        ("vllm serve a -tp", ["-tp: found no value"]),
        ("vllm serve a --gpu-memory-utilization 1.5", ["above 0, at most 1"]),
        ("vllm serve a --gpu-memory-utilization nan", ["above 0, at most 1"]),
        ("vllm serve a --quantization magic", ["--quantization: found 'magic'", "awq"]),
        ("vllm serve a --kv-cache-dtype int2", ["--kv-cache-dtype"]),
        ("vllm serve a --max-model-len 1.5", ["--max-model-len"]),
        ("vllm serve a --eplb-config '[1]'", ["a JSON object"]),
        ("vllm serve a --eplb-config '{\"num_redundant_experts\": -4}'", ["num_redundant_experts = -4"]),
        ("vllm serve a --kv-transfer-config '{\"kv_role\": 4}'", ["kv_role = 4"]),
        ("vllm serve a -tp $RANKS --max-num-seqs ${SEQS}", ["$RANKS", "$SEQS", "nothing sets"]),
        ("echo hello", ["no start of vLLM"]),
        ("vllm serve 'a", ["a quote that is not closed"]),
    ],
)
def test_what_cannot_be_is_named(tmp_path: Path, catalog: Catalog, text: str, phrases: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        of_text(tmp_path, catalog, text)
    assert all(phrase in str(caught.value) for phrase in phrases), str(caught.value)


def test_all_problems_come_at_once(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(ConfigurationError) as caught:
        of_text(tmp_path, catalog, "vllm serve -tp x -pp y --max-num-seqs z")
    assert len(caught.value.findings) == 4


def test_a_deployment_says_who_runs_where(tmp_path: Path, catalog: Catalog) -> None:
    pod = a_pod("--model", "openai/gpt-oss-120b", "-tp", "2", gpus="2")
    pod["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    (found,) = of_yaml(tmp_path, catalog, a_deployment(pod, replicas=3))
    assert (found.llm, found.replicas, found.variant.accelerator) == ("gpt-oss-120b", 3, "H200")
    assert found.variant.object is not None
    assert (found.variant.object.name, found.variant.object.namespace) == ("chat", "serving")


@pytest.mark.parametrize(
    "container",
    [
        {"command": ["vllm", "serve", "Qwen/Qwen3-8B"], "args": ["-tp", "2"]},
        {"command": ["/bin/sh", "-c"], "args": ["exec vllm serve Qwen/Qwen3-8B -tp 2"]},
        {"command": ["bash", "-lc", "vllm serve Qwen/Qwen3-8B -tp 2"], "args": []},
        {"command": ["python3", "-m", "vllm.entrypoints.openai.api_server"], "args": ["--model=Qwen/Qwen3-8B", "-tp", "2"]},
        {"args": ["Qwen/Qwen3-8B", "-tp", "$(TP)"], "env": [{"name": "TP", "value": "2"}]},
        {"command": ["sh", "-c", "vllm serve $MODEL -tp $TP"], "env": [{"name": "TP", "value": 2}, {"name": "MODEL", "value": "Qwen/Qwen3-8B"}]},
    ],
)  # fmt: skip
def test_the_ways_to_start_a_container(tmp_path: Path, catalog: Catalog, container: dict[str, Any]) -> None:
    (found,) = of_yaml(tmp_path, catalog, a_deployment(a_pod(gpus=2, **container)))
    assert (found.llm, found.variant.parallelism.tp) == ("Qwen3-8B", 2)


def test_pods_templates_and_lists_are_read(tmp_path: Path, catalog: Catalog) -> None:
    bare = {
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": a_pod("--model", "Qwen/Qwen3-8B", gpus=1),
    }
    template = {"metadata": {"name": "two"}, "spec": a_pod("--model", "Qwen/Qwen3-8B", gpus=1)}
    listed = {
        "kind": "List",
        "items": [a_deployment(a_pod("--model", "Qwen/Qwen3-32B", "-tp", "4", gpus=4))],
    }
    found = of_yaml(tmp_path, catalog, bare, template, listed, {"kind": "Service"}, None)
    assert [(each.variant.id, each.llm) for each in found] == [
        ("one", "Qwen3-8B"),
        ("two", "Qwen3-8B"),
        ("chat", "Qwen3-32B"),
    ]


def test_a_leader_worker_set_has_several_pods(tmp_path: Path, catalog: Catalog) -> None:
    leader = {"spec": a_pod("--model", "deepseek-ai/DeepSeek-R1", "-tp", "8", "-pp", "2", gpus=8)}
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "leaderTemplate": leader}}
    (found,) = of_yaml(
        tmp_path, catalog, {"kind": "LeaderWorkerSet", "metadata": {"name": "r1"}, "spec": spec}
    )
    assert (found.variant.pods_per_replica, found.variant.gpus_per_pod, found.replicas) == (2, 8, 2)
    assert found.variant.object is not None
    assert found.variant.object.kind == "LeaderWorkerSet"


@pytest.mark.parametrize(
    ("document", "phrases"),
    [
        (
            a_deployment(a_pod("--model", "Qwen/Qwen3-8B", "-tp", "4", gpus=8)),
            ["chat: resources: found 8 GPUs a pod", "the 4 that tp x pp x dp use"],
        ),
        (a_deployment(a_pod("--model", "a", gpus=[1])), ["nvidia.com/gpu: found [1]"]),
        (a_deployment(a_pod("--model", "a"), replicas=-2), ["spec.replicas: found -2"]),
        (
            a_deployment(a_pod(command=["nginx"])),
            ["no container that runs vllm serve"],
        ),
        (a_deployment({"containers": "many"}), ["no container"]),
        ({"kind": "Deployment", "spec": {"template": {"spec": None}}}, ["no container"]),
        (
            a_deployment(a_pod("--model", "a") | {"nodeSelector": {"nvidia.com/gpu.product": "H900"}}),
            [],
        ),
    ],
)
def test_what_a_pod_cannot_be_is_named(
    tmp_path: Path, catalog: Catalog, document: Any, phrases: list[str]
) -> None:
    if not phrases:
        assert of_yaml(tmp_path, catalog, document)[0].variant.accelerator == "H100"
        return
    with pytest.raises(ConfigurationError) as caught:
        of_yaml(tmp_path, catalog, document)
    assert all(phrase in str(caught.value) for phrase in phrases), str(caught.value)


def test_an_accelerator_must_be_named(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "s.sh"
    path.write_text("vllm serve a", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="--accelerator NAME"):
        import_vllm([path], catalog)
    with pytest.raises(ConfigurationError, match="accelerator: found 'H900'"):
        import_vllm([path], catalog, accelerator="H900")


def test_two_starts_with_one_name_are_refused(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "s.sh"
    path.write_text("vllm serve a\nvllm serve a", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="the same name 2 times"):
        import_vllm([path], catalog, accelerator="H100")


@pytest.mark.parametrize("text", ["{", "a: &x [*x]", "\0", "a: !!python/object:os.system {}"])
def test_text_that_is_no_yaml_is_refused(tmp_path: Path, catalog: Catalog, text: str) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError):
        import_vllm([path], catalog, accelerator="H100")


def test_anchors_that_unfold_are_refused(tmp_path: Path, catalog: Catalog) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)
    )
    path = tmp_path / "pods.yaml"
    path.write_text(bomb, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="anchors that unfold"):
        import_vllm([path], catalog, accelerator="H100")
