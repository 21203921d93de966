"""Anchors of YAML: one level of them is usual and harmless, nested ones turn a few lines into gigabytes."""

from __future__ import annotations

from typing import Final

import yaml

__all__ = ["MOST_VALUES", "unfolds"]

MOST_VALUES: Final = 10**6


def unfolds(node: yaml.Node | None, most: int = MOST_VALUES) -> bool:
    """Whether a document has more than ``most`` values when every reference to an anchor is counted as what it stands for."""
    stack = [] if node is None else [node]
    visited = 0
    while stack:
        one = stack.pop()
        visited += 1
        if visited > most:
            return True
        if isinstance(one, yaml.SequenceNode):
            stack += one.value
        elif isinstance(one, yaml.MappingNode):
            stack += [each for pair in one.value for each in pair]
    return False
