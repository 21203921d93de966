"""Families of gauges and counters as Prometheus' text format: tens of thousands of series are written in a cycle.

``prometheus_client`` looks at every name of every label of every series anew. Here a family's names are looked at once;
what is written is byte by byte the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["page_of"]

_ESCAPED: Final = {ord("\\"): r"\\", ord("\n"): r"\n", ord('"'): r"\""}
_IN_TEXTS: Final = {ord("\\"): r"\\", ord("\n"): r"\n"}


def page_of(families: Iterable[Metric]) -> bytes:
    """The text of some families of gauges and counters, without times of samples.

    Args:
        families: whose names and names of labels are those of Prometheus; values of labels may be any text.
    """
    from prometheus_client.utils import floatToGoString

    figure: Callable[[float], str] = floatToGoString
    lines: list[str] = []
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"# HELP {name} {family.documentation.translate(_IN_TEXTS)}\n")
        lines.append(f"# TYPE {name} {family.type}\n")
        written = partial(_written, {})
        lines += [
            f"{sample.name}{written(sample.labels)} {figure(sample.value)}\n" for sample in family.samples
        ]
    return "".join(lines).encode()


def _written(orders: dict[tuple[str, ...], list[str]], labels: Mapping[str, str]) -> str:
    """Labels in order of their names; nothing where there are none.

    Args:
        orders: names of labels in order, by those in which they came.
        labels: of one sample.
    """
    if not labels:
        return ""
    names = tuple(labels)
    if names not in orders:
        orders[names] = sorted(names)
    return "{%s}" % ",".join([f'{name}="{labels[name].translate(_ESCAPED)}"' for name in orders[names]])  # noqa: UP031 - braces
