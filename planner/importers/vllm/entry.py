"""Starts of vLLM -> variants, and the services that they serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from models.variant import Role, Variant
from planner.catalog import Catalog
from planner.errors import ConfigurationError, Finding, nearest
from planner.importers.documents import identifier
from planner.importers.vllm.arguments import Arguments, Complain, read_arguments
from planner.importers.vllm.pods import Serving, read_pods
from planner.importers.vllm.shell import UnreadableTextError, started
from planner.performance.profile import read_text

__all__ = ["ImportedVariant", "import_vllm", "services_of"]

_YAML: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class ImportedVariant:
    """A variant, what it serves, and what is known of where it runs.

    Attributes:
        service: name of the service.
        llm: name of the LLM in the catalog, or as the command line has it.
        variant: the variant.
        replicas: that the object states; None: there is no object, or it does not say.
        notes: what was not understood, for people.
    """

    service: str
    llm: str
    variant: Variant
    replicas: int | None = None
    notes: tuple[str, ...] = ()


def import_vllm(
    paths: Sequence[Path], catalog: Catalog, *, accelerator: str | None = None
) -> tuple[ImportedVariant, ...]:
    """Variants of every start of vLLM in the files.

    Args:
        paths: YAML or JSON with Kubernetes objects or pod templates, else shell text.
        catalog: knows LLMs and accelerators by their aliases.
        accelerator: catalog name for starts that do not name one.

    Raises:
        ConfigurationError: anything in the files that cannot be, or an accelerator that nobody names; all at once.
    """
    findings: list[Finding] = []
    servings: list[Serving] = []
    for path in paths:
        try:
            servings += read_pods(path) if path.suffix.casefold() in _YAML else _read_text(path)
        except ConfigurationError as error:
            findings += error.findings
    found = [_variant(serving, catalog, accelerator, findings) for serving in servings]
    variants = [each for each in found if each is not None]
    findings += _named_twice(variants)
    if findings:
        raise ConfigurationError.from_findings(findings)
    return tuple(variants)


def _read_text(path: Path) -> list[Serving]:
    """Starts in a shell text."""
    try:
        found = started(read_text(path))
    except UnreadableTextError as cause:
        raise ConfigurationError.from_findings(
            [Finding(str(path), None, "", str(cause), "text that a shell takes")]
        ) from cause
    if not found:
        raise ConfigurationError.from_findings(
            [Finding(str(path), None, "", "no start of vLLM", "a command 'vllm serve MODEL ...'")]
        )
    return [Serving(file=str(path), started=each) for each in found]


def _variant(
    serving: Serving, catalog: Catalog, accelerator: str | None, findings: list[Finding]
) -> ImportedVariant | None:
    before = len(findings)
    where = serving.name or ""

    def complain(path: str, found: str, allowed: str) -> None:
        findings.append(Finding(serving.file, None, f"{where}: {path}" if where else path, found, allowed))

    for name in serving.started.unknown:
        complain(
            f"${name}", "a variable that nothing sets", "a value in the text or the env of the container"
        )
    said = read_arguments(serving.started.arguments, complain)
    if said.model is None:
        complain("model", "nothing", "vllm serve MODEL, or --model MODEL")
    device = _accelerator(serving.product, accelerator, catalog, complain)
    if serving.gpus is not None and serving.gpus * serving.pods != said.tp * said.pp * said.dp:
        held = f"{serving.gpus} GPUs a pod" + (f" in {serving.pods} pods" if serving.pods > 1 else "")
        complain("resources", held, f"the {said.tp * said.pp * said.dp} that tp x pp x dp use")
    if len(findings) > before or said.model is None or device is None:
        return None
    llm = _llm(said.model, catalog)
    try:
        variant = Variant.model_validate(_fields(serving, said, device))
    except ValidationError as cause:
        for error in cause.errors(include_url=False):
            complain(".".join(map(str, error["loc"])), str(error.get("input"))[:60], error["msg"])
        return None
    service = identifier(said.served_as or llm or said.model.rpartition("/")[2])
    return ImportedVariant(service, llm or said.model, variant, serving.replicas, _notes(said, llm))


def _fields(serving: Serving, said: Arguments, device: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": identifier(serving.name or _label(said, device)),
        "accelerator": device,
        "parallelism": {
            "tp": said.tp,
            "pp": said.pp,
            "dp": said.dp,
            "ep": said.tp * said.dp if said.expert_parallel else 1,
        },
        "quantization": {"weights": said.weights, "kv_cache": said.kv_cache},
        "role": said.role,
        "engine": "vllm",
        "pods_per_replica": serving.pods,
        "engine_arguments": said.of_engine(),
    }
    if said.memory_utilization is not None:
        fields["memory_utilization"] = said.memory_utilization
    if serving.kind in {"Deployment", "LeaderWorkerSet", "StatefulSet"} and serving.name:
        fields["object"] = {"kind": serving.kind, "name": serving.name, "namespace": serving.namespace}
    return fields


def _label(said: Arguments, device: str) -> str:
    """A name for a variant that has none: ``h100-tp8-ep8-prefill``."""
    parts = [device.casefold(), f"tp{said.tp}"]
    parts += [f"{name}{degree}" for name, degree in (("pp", said.pp), ("dp", said.dp)) if degree > 1]
    parts += ["ep"] if said.expert_parallel else []
    parts += [said.weights] if said.weights is not None else []
    return "-".join([*parts, *([said.role] if said.role is not Role.BOTH else [])])


def _accelerator(product: str | None, given: str | None, catalog: Catalog, complain: Complain) -> str | None:
    name = product or given
    if name is None:
        complain(
            "accelerator", "nothing", "a node selector such as nvidia.com/gpu.product, or --accelerator NAME"
        )
        return None
    for candidate in dict.fromkeys([name, given or name]):
        found = catalog.find_accelerator(candidate)
        if found is not None:
            return found.id
    close = nearest(name, catalog.accelerators)
    allowed = "an accelerator of the catalog" + (f", e.g. {close}" if close else "")
    complain("accelerator", repr(name[:60]), allowed)
    return None


def _llm(model: str, catalog: Catalog) -> str | None:
    """The name in the catalog; a path is looked up by its last part too."""
    for name in (model, model.rstrip("/").rpartition("/")[2]):
        found = catalog.find_llm(name)
        if found is not None:
            return found.id
    return None


def _notes(said: Arguments, llm: str | None) -> tuple[str, ...]:
    notes = []
    if llm is None:
        notes.append(
            f"{said.model} is not in the catalog: import its config.json with 'fleetplan import huggingface'"
        )
    if said.other:
        notes.append(f"nothing is concluded from {', '.join(said.other)}")
    return tuple(notes)


def _named_twice(variants: Sequence[ImportedVariant]) -> list[Finding]:
    counted: dict[tuple[str, str], int] = {}
    for each in variants:
        key = (each.service, each.variant.id)
        counted[key] = counted.get(key, 0) + 1
    return [
        Finding(
            "",
            None,
            f"{service}/{variant}",
            f"the same name {count} times",
            "starts that differ in name or layout",
        )
        for (service, variant), count in counted.items()
        if count > 1
    ]


def services_of(variants: Sequence[ImportedVariant]) -> Mapping[str, Mapping[str, Any]]:
    """Services by name, each with its LLM and variants, in the long form of scenario files."""
    services: dict[str, dict[str, Any]] = {}
    for each in variants:
        fields = each.variant.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
        service = services.setdefault(each.service, {"llm": each.llm, "variants": {}})
        service["variants"][each.variant.id] = fields
    return services
