"""Fleetplan: how many replicas of which variant run on which GPUs.

The public door is lazy: importing :mod:`planner` loads no solver, no table library and no user
interface; a name of the door loads what it needs when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__all__ = [
    "__version__",
    "check",
    "explain",
    "load_scenario",
    "pareto",
    "plan",
    "simulate",
    "solve",
    "solve_again",
]

__version__ = "0.1.0"

_DOOR: Final = {
    "check": "planner.referee:check",
    "explain": "planner.door:explain",
    "load_scenario": "planner.door:load_scenario",
    "pareto": "planner.door:pareto",
    "plan": "planner.door:plan",
    "simulate": "planner.door:simulate",
    "solve": "planner.door:solve",
    "solve_again": "planner.door:solve_again",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the door has callables of many kinds
    target = _DOOR.get(name)
    if target is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = target.partition(":")
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOOR})


def _refuse_foreign_models() -> None:
    """Fail in one sentence if the name ``models`` belongs to somebody else.

    The name is common: any folder that Python starts in may hold another one.

    Raises:
        ImportError: ``models`` is missing or foreign; names the intruder's path.
    """
    cure = "install fleetplan into a virtual environment of its own and start it by its command 'fleetplan'"
    try:
        models = import_module("models")
    except ModuleNotFoundError as cause:
        if cause.name != "models":
            raise
        raise ImportError(f"fleetplan's own package 'models' is not installed; {cure}") from cause
    if not str(getattr(models, "SCHEMA", "")).startswith("fleetplan/"):
        path = getattr(models, "__file__", None) or ", ".join(
            getattr(models, "__path__", ["an unknown place"])
        )
        raise ImportError(f"the package 'models' at {path} hides fleetplan's own; {cure}", path=path)


_refuse_foreign_models()
