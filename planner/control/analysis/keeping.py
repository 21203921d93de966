"""Frozen values as JSON and back: what is remembered between two cycles survives a restart.

A mapping is written as a list of pairs, since its keys may be more than texts; what was written is read back by the
types of the fields, and whatever does not fit them is refused as a whole.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["Json", "from_json", "to_json"]

Json = Any
"""What ``json.dumps`` takes."""

_Kind = TypeVar("_Kind")


def to_json(value: object) -> Json:
    """A value of dataclasses, named tuples, tuples, mappings, enumerations and plain values as JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value) if _kept(f)}
    if isinstance(value, Mapping):
        return [[to_json(key), to_json(each)] for key, each in value.items()]
    if isinstance(value, tuple):
        return [to_json(each) for each in value]
    raise TypeError(f"a {type(value).__name__} is not kept")


def from_json(kind: type[_Kind], raw: Json) -> _Kind:
    """The value of a dataclass that :func:`to_json` wrote; fields that are missing have their defaults.

    Raises:
        ValueError: it was not written so, or is damaged.
    """
    try:
        found: _Kind = _read(kind, raw)
    except (TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as cause:
        raise ValueError(f"what was kept is no {kind.__name__}: {cause}") from cause
    return found


def _kept(field: dataclasses.Field[Any]) -> bool:
    return bool(field.metadata.get("kept", True))


@lru_cache(maxsize=64)
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, raw: Json) -> Any:  # noqa: ANN401 - any type of a field
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        known = {f.name: hints[f.name] for f in dataclasses.fields(kind) if _kept(f)}
        return kind(**{name: _read(known[name], each) for name, each in raw.items() if name in known})  # type: ignore[operator]
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if raw is None else _read(next(one for one in args if one is not type(None)), raw)
    if origin is tuple:
        return _tuple(args, raw)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_read(args[0], key): _read(args[1], each) for key, each in raw}
    if isinstance(kind, type) and issubclass(kind, tuple):
        hints = _hints(kind)
        return kind(*(_read(hints[name], each) for name, each in zip(kind._fields, raw, strict=True)))  # type: ignore[attr-defined]
    return _plain(kind, raw)


def _tuple(args: tuple[Any, ...], raw: Json) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise TypeError(f"{raw!r} is no list")
    if args[-1] is Ellipsis:
        return tuple(_read(args[0], each) for each in raw)
    return tuple(_read(one, each) for one, each in zip(args, raw, strict=True))


def _plain(kind: Any, raw: Json) -> Any:  # noqa: ANN401 - as _read
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(raw)
    if kind is float and not isinstance(raw, bool) and isinstance(raw, int | float | str):
        return float(raw)
    if kind in (int, str, bool) and type(raw) is kind:
        return raw
    raise TypeError(f"{str(raw)[:40]!r} is no {getattr(kind, '__name__', kind)}")
