"""Quantities as Kubernetes writes them: ``8``, ``500m``, ``1.5Gi``, ``2e3``."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Final

__all__ = ["quantity", "whole"]

_FORM: Final = re.compile(
    r"^([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([eE][+-]?\d{1,2})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]))?$"
)
_SCALES: Final = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_MOST: Final = 10**9


def quantity(value: object) -> Decimal | None:
    """The number that a quantity stands for; None: it is none.

    Source: ``k8s.io/apimachinery/pkg/api/resource`` (serialization format).
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _FORM.match(str(value)) if len(str(value)) <= 70 else None  # noqa: PLR2004 - longer is no number
    if found is None:
        return None
    try:
        return Decimal(found[1] + (found[2] or "")) * _SCALES[found[3] or ""]
    except InvalidOperation:
        return None


def whole(value: object) -> int | None:
    """A count of devices: parts count as one more, since a device is not parted; None: no count from 0 to 10^9."""
    number = quantity(value)
    if number is None or not 0 <= number <= _MOST:
        return None
    return int(number.to_integral_value(rounding=ROUND_CEILING))
