"""Shell text -> the commands in it that start vLLM, with the variables that are set for them.

Understood are quotes, continued lines, comments, ``export``, assignments before a command, ``;``, ``&&``, ``||``, ``|`` and
``&``, and ``$NAME``, ``${NAME}`` and ``${NAME:-default}`` where the text or the pod sets the variable. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Started", "UnreadableTextError", "serve_arguments", "started"]

_ASSIGNMENT: Final = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
_VARIABLE: Final = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^{}]*))?\}|(?P<plain>[A-Za-z_]\w*)|\((?P<pod>[A-Za-z_]\w*)\))"
)
_ENDS: Final = frozenset({";", "&&", "||", "|", "&", "\n", "(", ")", ";;"})
_SCANNER: Final = re.compile(
    r"""(?P<single>'[^']*')|(?P<double>"(?:[^"\\]|\\.)*")|(?P<escape>\\.)|(?P<space>[ \t]+)"""
    r"""|(?P<end>\n|&&|\|\||;;|[;|&()])|(?P<comment>\#[^\n]*)|(?P<variable>\$[({][^(){}]*[)}])"""
    r"""|(?P<text>[^\s'"\\;|&()\#$]+|\$)|(?P<open>['"\\])""",
    re.DOTALL,
)
_IN_QUOTES: Final = re.compile(r"""\\([\\"$`\n])""")
_SERVERS: Final = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")


class UnreadableTextError(ValueError):
    """A text that no shell would take: a quote that is not closed."""


@dataclass(frozen=True, slots=True)
class Started:
    """One start of vLLM.

    Attributes:
        arguments: of ``vllm serve``.
        environment: variables that are set for it.
        unknown: variables that it uses and nothing sets.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    unknown: tuple[str, ...] = ()


def started(text: str, environment: Mapping[str, str] | None = None) -> list[Started]:
    """Every command of a text that starts vLLM.

    Args:
        text: as a shell reads it.
        environment: variables that are set from outside.

    Raises:
        UnreadableTextError: a quote is not closed.
    """
    known = dict(environment or {})
    found: list[Started] = []
    for words in _commands(text):
        own, rest = _assignments(words, known)
        if not rest or rest[0] == "export":
            exported, _ = _assignments(rest[1:], known | own)
            known |= own | exported
            continue
        arguments = serve_arguments(rest)
        if arguments is not None:
            found.append(_filled(arguments, known | own))
    return found


def serve_arguments(words: Sequence[str]) -> tuple[str, ...] | None:
    """The arguments of ``vllm serve``, or of the server module, inside a command; None: it starts something else."""
    for index, word in enumerate(words[:-1] if words else ()):
        if word.rpartition("/")[2] == "vllm" and words[index + 1] == "serve":
            return tuple(words[index + 2 :])
        if word == "-m" and words[index + 1] in _SERVERS:
            return tuple(words[index + 2 :])
    return None


def _filled(arguments: Sequence[str], known: Mapping[str, str]) -> Started:
    unknown: list[str] = []

    def value_of(found: re.Match[str]) -> str:
        name = found["braced"] or found["plain"] or found["pod"]
        if name in known:
            return known[name]
        if found["default"] is not None:
            return found["default"]
        unknown.append(name)
        return found[0]

    filled = tuple(_VARIABLE.sub(value_of, argument) for argument in arguments)
    return Started(filled, dict(known), tuple(dict.fromkeys(unknown)))


def _assignments(words: Sequence[str], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Assignments at the start of a command, and what is left of it."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        match = _ASSIGNMENT.match(word)
        if match is None:
            return found, list(words[index:])
        found[match[1]] = _filled([match[2]], {**known, **found}).arguments[0]
    return found, []


def _commands(text: str) -> Iterator[list[str]]:
    """Words of each command. A line ends a command unless a quote is open or a backslash continues it."""
    words: list[str] = []
    for word, quoted in _words(text):
        if not quoted and word in _ENDS:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Words and separators, each with whether it was quoted."""
    scanner = _SCANNER.finditer(text.replace("\r\n", "\n"))
    word: list[str] = []
    quoted = False
    for found in scanner:
        kind = found.lastgroup
        if kind in {"space", "end", "comment"}:
            if kind == "comment" and word:
                word.append(found[0])
                continue
            if any(word) or quoted:
                yield "".join(word), quoted
            word, quoted = [], False
            if kind == "end":
                yield found[0], False
        elif kind == "open":
            raise UnreadableTextError("a quote that is not closed")
        else:
            quoted = quoted or kind in {"single", "double"}
            word.append(_plain(kind, found[0]))
    if any(word) or quoted:
        yield "".join(word), quoted


def _plain(kind: str | None, text: str) -> str:
    """What a piece of a word stands for."""
    match kind:
        case "single":
            return text[1:-1]
        case "double":
            return _IN_QUOTES.sub(lambda found: found[1] if found[1] != "\n" else "", text[1:-1])
        case "escape":
            return "" if text[1] == "\n" else text[1]
        case _:
            return text
