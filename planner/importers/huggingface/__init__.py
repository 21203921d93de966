"""Hugging Face ``config.json`` -> LLM: families, layers, matrices, and how they are stored."""

from planner.importers.huggingface.entry import ImportedLlm, import_huggingface

__all__ = ["ImportedLlm", "import_huggingface"]
