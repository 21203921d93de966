"""Names of accelerators: what labels of nodes and pods say, and the one name that both sides are compared by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from planner.catalog import Catalog

__all__ = ["PRODUCT_LABELS", "Names", "devices_of", "is_device"]

PRODUCT_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "nvidia.com": (
        "nvidia.com/gpu.product",
        "cloud.google.com/gke-accelerator",
        "gpu.nvidia.com/model",
        "k8s.amazonaws.com/accelerator",
        "karpenter.k8s.aws/instance-gpu-name",
    ),
    "amd.com": ("amd.com/gpu.product-name", "amd.com/gpu.product", "cloud.google.com/gke-accelerator"),
    "gpu.intel.com": ("gpu.intel.com/product",),
    "habana.ai": ("habana.ai/gaudi.product",),
    "google.com": ("cloud.google.com/gke-tpu-accelerator",),
}
"""Labels that name the product, the most exact first, by the domain of the resource.

Sources: NVIDIA gpu-feature-discovery, AMD node labeller, Intel device plugins, GKE, EKS and Karpenter documentation.
"""

_MEMORY_LABELS: Final = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
_AMD_DEVICES: Final = {"74a1": "MI300X", "74b5": "MI300X", "74a5": "MI325X"}
"""AMD's PCI device ids, for labellers that name nothing else (dstack's gpuhunt, ROCm node labeller)."""

_WHOLE: Final = frozenset({"gpu", "gpu.shared", "gaudi", "tpu", "i915", "xe"})
_SLICE: Final = re.compile(r"^mig-(\d+(?:c\.\d+)?g\.\d+gb(?:\.me)?(?:\.all)?)(?:\.shared)?$")
_PARTITION: Final = re.compile(r"^(?:spx|dpx|tpx|qpx|cpx)(?:_nps\d)?$")
_MIG: Final = re.compile(r"^(.+?)-MIG-(.+?)$", re.IGNORECASE)
_SHARED: Final = re.compile(r"^(.+?)-SHARED$", re.IGNORECASE)
_MAKERS: Final = re.compile(r"^(?:nvidia|amd|intel|tesla|instinct|habana)[-_ ]+", re.IGNORECASE)
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_MIB_OF_A_GB: Final = 1024


def is_device(resource: str) -> bool:
    """Whether a resource counts accelerators, whole ones or slices."""
    domain, _, name = resource.partition("/")
    if domain not in PRODUCT_LABELS:
        return False
    sliced = domain == "nvidia.com" and _SLICE.match(name) is not None
    parted = domain == "amd.com" and _PARTITION.match(name) is not None
    return name in _WHOLE or sliced or parted


def devices_of(amounts: Mapping[str, int], further: Mapping[str, str]) -> dict[str, int]:
    """The accelerators among amounts of resources; ``further`` names resources that count as such too."""
    return {name: each for name, each in amounts.items() if each > 0 and (name in further or is_device(name))}


@dataclass(frozen=True, slots=True)
class Names:
    """Gives accelerators the names of the catalog.

    Args:
        catalog: knows types by id and alias.
        labels: of nodes and pods that name the type too, before all others.
        resources: type by resource, where no label says it.
    """

    catalog: Catalog
    labels: tuple[str, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)

    def normal(self, name: str) -> str:
        """The one name of an accelerator: the catalog's, else the product without its maker, in capitals.

        Slices of a GPU and shares of one are types of their own: ``H100-MIG-1g.10gb``, ``L4-shared``.
        """
        cut = name.strip()[:200]
        shared = _SHARED.match(cut)
        if shared is not None:
            return f"{self.normal(shared[1])}-shared"
        sliced = _MIG.match(cut)
        if sliced is not None:
            return f"{self.normal(sliced[1])}-MIG-{_tidy(sliced[2]).lower()}"
        bare = cut
        while (shorter := _MAKERS.sub("", bare)) != bare:
            bare = shorter
        return self._known(cut) or self._known(bare) or _tidy(bare).upper()[:100]

    def _known(self, name: str) -> str | None:
        for form in dict.fromkeys(
            (name, name.replace(" ", "-"), name.replace("_", "-"), name.replace("-", "_"))
        ):
            found = self.catalog.find_accelerator(form)
            if found is not None:
                return found.id
        return None

    def of(self, resource: str, labels: Mapping[str, str]) -> str | None:
        """The type that labels of a node say its devices of a resource are; None: they do not say."""
        product = self._product(resource, labels)
        if not product:
            return None
        name = self._with_memory(product, labels)
        piece = _piece(resource, labels)
        if piece and _MIG.match(product) is None:
            return f"{name}-{piece}"
        if _is_shared(resource, labels) and not name.endswith("-shared"):
            return f"{name}-shared"
        return name

    def named_by(self, labels: Mapping[str, str]) -> str | None:
        """The type that labels of a pod's node selector name; None: they name none."""
        for key in (*self.labels, *(key for keys in PRODUCT_LABELS.values() for key in keys)):
            if labels.get(key):
                piece = labels.get("cloud.google.com/gke-gpu-partition-size")
                named = self._with_memory(labels[key], labels)
                return f"{named}-MIG-{_tidy(piece).lower()}" if piece else named
        return None

    def _product(self, resource: str, labels: Mapping[str, str]) -> str:
        domain, _, device = resource.partition("/")
        for key in (*self.labels, f"{domain}/{device}.product", *PRODUCT_LABELS.get(domain, ())):
            if labels.get(key):
                return labels[key]
        found = _amd_product(labels) if domain == "amd.com" else ""
        return found or self.resources.get(resource, "")

    def _with_memory(self, product: str, labels: Mapping[str, str]) -> str:
        """A product that comes with several sizes of memory is told apart by it."""
        for key in _MEMORY_LABELS:
            text = labels.get(key, "")
            if text.isascii() and text.isdigit() and len(text) < 8:  # noqa: PLR2004 - MiB
                known = self._known(f"{product}-{round(int(text) / _MIB_OF_A_GB)}GB")
                if known is not None:
                    return known
        return self.normal(product)


def _piece(resource: str, labels: Mapping[str, str]) -> str:
    """What part of a GPU one device of a resource is; empty: a whole one, or its product says so."""
    domain, _, device = resource.partition("/")
    sliced = _SLICE.match(device)
    if sliced is not None:
        return f"MIG-{sliced[1]}"
    if domain == "amd.com" and _PARTITION.match(device):
        return device
    size = labels.get("cloud.google.com/gke-gpu-partition-size", "")
    return f"MIG-{_tidy(size).lower()}" if size and domain == "nvidia.com" else ""


def _is_shared(resource: str, labels: Mapping[str, str]) -> bool:
    """Whether several pods at a time are promised the same GPU (time slicing, MPS)."""
    if resource.endswith(".shared") or labels.get("cloud.google.com/gke-gpu-sharing-strategy"):
        return True
    copies = labels.get("nvidia.com/gpu.replicas", "")
    return (
        resource == "nvidia.com/gpu"
        and copies.isascii()
        and copies.isdigit()
        and copies.strip("0") not in {"", "1"}
    )


def _amd_product(labels: Mapping[str, str]) -> str:
    """The product as AMD's earlier labels have it, with name or device id in the key."""
    for key in sorted(labels):
        for prefix in ("beta.amd.com/gpu.product-name.", "amd.com/gpu.product-name."):
            if key.startswith(prefix):
                return key.removeprefix(prefix)
    ids = [labels.get("amd.com/gpu.device-id", "")]
    ids += [key.rpartition(".")[2] for key in sorted(labels) if ".amd.com/gpu.device-id." in f".{key}"]
    return next((_AMD_DEVICES[each.lower()] for each in ids if each.lower() in _AMD_DEVICES), "")


def _tidy(text: str) -> str:
    return _NOT_IN_A_NAME.sub("-", text).strip("-._") or "unknown"
