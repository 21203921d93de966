"""Pod templates -> which engine is started, and with which arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from models.engine import EngineArguments
from planner.control.cluster.reading import at, items_of, text_at
from planner.errors import Finding
from planner.importers.vllm.arguments import read_arguments
from planner.importers.vllm.pods import starts_of, words_of

__all__ = ["arguments_of", "engine_of"]

_SGLANG: Final = "sglang"
_MOST_WORDS: Final = 2000
_COUNTS: Final = {
    "context-length": "context_tokens",
    "chunked-prefill-size": "batched_tokens",
    "max-running-requests": "max_requests",
    "page-size": "block_tokens",
}
"""Arguments of SGLang's server that mean what one of ours does (sgl-project/sglang 0.5, server_args.py)."""


def engine_of(pod_spec: object) -> str:
    """``sglang`` where image or command of a container name it, else ``vllm``."""
    return (
        _SGLANG
        if any(_is_sglang(container) for container in items_of(at(pod_spec, "containers")))
        else "vllm"
    )


def _is_sglang(container: Mapping[str, Any]) -> bool:
    words = [text_at(container, "image"), *words_of(container)[:_MOST_WORDS]]
    return any(_SGLANG in word.casefold() for word in words)


def arguments_of(pod_spec: object) -> tuple[EngineArguments, tuple[str, ...]]:
    """What the engine of a pod is started with, and what of it could not be read.

    Read are ``args``, ``command``, and the script that a shell is given with ``-c``, with the variables of the container.
    """
    problems: list[str] = []
    for container in items_of(at(pod_spec, "containers")):
        if _is_sglang(container):
            return _sglang(container, problems), tuple(problems)
        found = _vllm(container, problems)
        if found is not None:
            return found, tuple(problems)
    return EngineArguments(), tuple(problems)


def _vllm(container: Mapping[str, Any], problems: list[str]) -> EngineArguments | None:
    unreadable: list[Finding] = []
    starts = starts_of(container, "", "", unreadable)
    problems += [each.found for each in unreadable]
    if not starts:
        return None

    def complain(name: str, found: str, allowed: str) -> None:
        problems.append(f"{name}: found {found}; allowed: {allowed}")

    problems += [f"${name}: a variable that nothing sets" for name in starts[0].unknown]
    said = read_arguments(starts[0].arguments, complain)
    other = tuple(each[:1000] for each in said.other[:500])
    return _valid(said.of_engine() | {"other": other}, problems)


def _sglang(container: Mapping[str, Any], problems: list[str]) -> EngineArguments:
    values = _named(_flat(container))
    # Pages of one token are the default of SGLang.
    fields: dict[str, Any] = {"block_tokens": 1}
    for name, field in _COUNTS.items():
        text = values.get(name, "")
        if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0:  # noqa: PLR2004 - digits of a number
            fields[field] = int(text)
        elif name in values and text != "-1":
            problems.append(f"--{name}: found {text[:60]!r}; allowed: a whole number from 1")
    fields["graphs"] = "disable-cuda-graph" not in values
    if "disable-radix-cache" in values:
        fields["prefix_caching"] = False
    return _valid(fields, problems)


def _flat(container: Mapping[str, Any]) -> list[str]:
    """The words of a container, those of a script among them."""
    found: list[str] = []
    for word in words_of(container)[:_MOST_WORDS]:
        found += word.replace("\\\n", " ").split() if any(sign in word for sign in " \n") else [word]
    return found[:_MOST_WORDS]


def _named(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            found[name.replace("_", "-")] = (
                value if sign else "" if following.startswith("--") else following.strip("'\"")
            )
    return found


def _valid(fields: Mapping[str, Any], problems: list[str]) -> EngineArguments:
    """The arguments without what cannot be."""
    try:
        return EngineArguments.model_validate(fields)
    except ValidationError as cause:
        wrong = {str(fault["loc"][0]) for fault in cause.errors(include_url=False, include_input=False)}
        problems += [f"{name}: a value that no engine takes" for name in sorted(wrong)]
        return EngineArguments.model_validate({key: each for key, each in fields.items() if key not in wrong})
