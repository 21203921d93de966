"""From what was seen to what it means: readings, demand against capacity, and whether a variant may be decided on."""

from planner.control.analysis.identity import VariantRef, ref_of

__all__ = ["VariantRef", "ref_of"]
