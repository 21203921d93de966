"""Kubernetes objects -> the containers in them that serve with vLLM, and how many GPUs their pods hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from planner.errors import ConfigurationError, Finding
from planner.importers.anchors import unfolds
from planner.importers.vllm.shell import Started, UnreadableTextError, serve_arguments, started
from planner.performance.profile import read_text

__all__ = ["Serving", "read_pods", "starts_of", "words_of"]

_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "habana.ai/gaudi")
_PRODUCTS: Final = (
    "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name",
    "cloud.google.com/gke-tpu-accelerator", "gpu.nvidia.com/model",
)  # fmt: skip
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_MOST_DOCUMENTS: Final = 1000
_MOST_DIGITS: Final = 9
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """One object that serves.

    Attributes:
        file: where it is from.
        kind: of the object; None: a bare pod template or command.
        name: of the object.
        namespace: of the object.
        replicas: that it states.
        pods: of one replica (``size`` of a LeaderWorkerSet).
        gpus: that one pod holds; None: it does not say.
        product: of the accelerator, as its node selector names it.
        started: how vLLM is started.
    """

    file: str
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    replicas: int | None = None
    pods: int = 1
    gpus: int | None = None
    product: str | None = None
    started: Started


def read_pods(path: Path) -> tuple[Serving, ...]:
    """Every object of a YAML or JSON file that serves with vLLM.

    Raises:
        ConfigurationError: the file cannot be read or is no YAML, or holds nothing that serves; all problems at once.
    """
    findings: list[Finding] = []
    found = [serving for document in _documents(path) for serving in _servings(document, str(path), findings)]
    if not found and not findings:
        findings.append(
            Finding(
                str(path),
                None,
                "",
                "no container that runs vllm serve",
                "a Deployment, StatefulSet, LeaderWorkerSet or pod with one",
            )
        )
    if findings:
        raise ConfigurationError.from_findings(findings)
    return tuple(found)


def _documents(path: Path) -> Iterator[Mapping[str, Any]]:
    loader = _LOADER(read_text(path))
    try:
        count = 0
        while loader.check_node() and count < _MOST_DOCUMENTS:
            node = loader.get_node()
            if unfolds(node):
                found = "anchors that unfold beyond a million values"
                raise ConfigurationError.from_findings([Finding(str(path), None, "", found, "plain values")])
            document = loader.construct_document(node)
            items = (
                document.get("items")
                if isinstance(document, dict) and document.get("kind") == "List"
                else None
            )
            for each in items if isinstance(items, list) else [document]:
                count += 1
                if isinstance(each, dict):
                    yield each
    except (yaml.YAMLError, RecursionError) as cause:
        mark = getattr(cause, "problem_mark", None)
        problem = getattr(cause, "problem", None) or "text that is no YAML"
        fault = Finding(str(path), None if mark is None else mark.line + 1, "", str(problem), allowed="YAML")
        raise ConfigurationError.from_findings([fault]) from cause
    finally:
        loader.dispose()


def _servings(document: Mapping[str, Any], file: str, findings: list[Finding]) -> Iterator[Serving]:
    kind = document.get("kind")
    metadata = _mapping(document.get("metadata"))
    spec = _mapping(document.get("spec"))
    pods, template = 1, _template(document, spec)
    if kind == "LeaderWorkerSet":
        group = _mapping(spec.get("leaderWorkerTemplate"))
        pods = group.get("size", 1)
        template = _mapping(group.get("leaderTemplate")) or _mapping(group.get("workerTemplate"))
    pod = _mapping(template.get("spec"))
    where = "/".join(str(part) for part in (kind, metadata.get("name")) if part)
    for container in _containers(pod):
        starts = starts_of(container, file, where, findings)
        for start in starts:
            yield Serving(
                file=file,
                kind=kind if isinstance(kind, str) else None,
                name=_text(metadata.get("name")),
                namespace=_text(metadata.get("namespace")),
                replicas=_count(spec.get("replicas"), f"{where}.spec.replicas", file, findings),
                pods=_count(pods, f"{where}.size", file, findings) or 1,
                gpus=_gpus(container, where, file, findings),
                product=_product(pod),
                started=start,
            )


def _template(document: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod of a workload, of a bare Pod, or of a bare template."""
    inner = _mapping(spec.get("template"))
    if inner:
        return inner
    return document if "containers" in spec else _mapping(document.get("template")) or {"spec": document}


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    containers = pod.get("containers")
    for each in containers if isinstance(containers, list) else ():
        if isinstance(each, dict):
            yield each


def starts_of(container: Mapping[str, Any], file: str, where: str, findings: list[Finding]) -> list[Started]:
    """How a container starts vLLM; the usual image starts it by itself.

    Args:
        container: of a pod.
        file: it is from, for messages.
        where: in that file, for messages.
        findings: takes what cannot be read.
    """
    words = words_of(container)
    environment = _environment(container)
    try:
        script = _script(words)
        if script is not None:
            return started(script, environment)
        arguments = serve_arguments(words)
        image = _text(container.get("image")) or ""
        if arguments is None and not _words(container.get("command")) and "vllm" in image:
            arguments = tuple(words)
        if arguments is None:
            return []
        return started(" ".join(["vllm serve", *map(_quoted, arguments)]), environment)
    except UnreadableTextError as cause:
        findings.append(Finding(file, None, where, str(cause), allowed="text that a shell takes"))
        return []


def words_of(container: Mapping[str, Any]) -> list[str]:
    """Command and arguments of a container."""
    return [*_words(container.get("command")), *_words(container.get("args"))]


def _quoted(word: str) -> str:
    """A word in double quotes, so that variables in it are still filled in."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _script(words: Sequence[str]) -> str | None:
    """The text that a shell is given with ``-c``."""
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        return None
    for index, word in enumerate(words[1:], start=1):
        if (
            word.startswith("-")
            and not word.startswith("--")
            and word.endswith("c")
            and index + 1 < len(words)
        ):
            return words[index + 1]
    return None


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    rows = container.get("env")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("name"), str) and "value" in row:
            found[row["name"]] = _word(row["value"])
    return found


def _gpus(container: Mapping[str, Any], where: str, file: str, findings: list[Finding]) -> int | None:
    resources = _mapping(container.get("resources"))
    for kind in ("limits", "requests"):
        amounts = _mapping(resources.get(kind))
        for name in _RESOURCES:
            if name in amounts:
                return _count(amounts[name], f"{where}.resources.{kind}.{name}", file, findings)
    return None


def _product(pod: Mapping[str, Any]) -> str | None:
    """The accelerator that the pod asks for: by its node selector, or by the only value of an affinity."""
    selector = _mapping(pod.get("nodeSelector"))
    named = next((_text(selector[name]) for name in _PRODUCTS if name in selector), None)
    if named is not None:
        return named
    affinity = _mapping(_mapping(pod.get("affinity")).get("nodeAffinity"))
    required = _mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = required.get("nodeSelectorTerms")
    for term in terms if isinstance(terms, list) else ():
        rows = _mapping(term).get("matchExpressions")
        for row in rows if isinstance(rows, list) else ():
            values = _mapping(row).get("values")
            if _mapping(row).get("key") in _PRODUCTS and isinstance(values, list) and len(values) == 1:
                return _text(values[0])
    return None


def _count(value: object, where: str, file: str, findings: list[Finding]) -> int | None:
    if value is None:
        return None
    text = value.strip() if isinstance(value, str) else value
    whole = (
        int(text)
        if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        else text
    )
    if isinstance(whole, bool) or not isinstance(whole, int) or not 0 <= whole <= 10**9:
        findings.append(Finding(file, None, where, repr(value)[:60], allowed="a whole number"))
        return None
    return whole


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return (
        [_word(each) for each in value if not isinstance(each, dict | list)]
        if isinstance(value, list)
        else []
    )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
