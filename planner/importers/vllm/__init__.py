"""``vllm serve`` in shell text and pods -> variants."""

from planner.importers.vllm.entry import ImportedVariant, import_vllm, services_of

__all__ = ["ImportedVariant", "import_vllm", "services_of"]
