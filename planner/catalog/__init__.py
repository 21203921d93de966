"""The catalog: accelerators, LLMs and profile tables from ``data/`` and from the user's own files."""

from planner.catalog.catalog import Catalog
from planner.catalog.load import catalog_root, load_catalog, source_descriptions

__all__ = ["Catalog", "catalog_root", "load_catalog", "source_descriptions"]
