"""Small languages of options: promises and request shapes in one word of the command line."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from models.llm import Precision
from models.variant import Role
from models.workload import Slo
from planner.errors import ConfigurationError, Finding, allowed_by, nearest

__all__ = ["AT_HELP", "SLO_HELP", "VARIANT_FORM", "parse_at", "parse_slo", "parse_variant"]

VARIANT_FORM: Final = "LLM@ACCELERATOR[:tp4,dp2,ep8,fp8,kv=fp8,vllm,decode]"

SLO_HELP: Final = "Promises, e.g. ttft=1s,itl=50ms,e2e=20s,at=p95 (mean without at=)."
AT_HELP: Final = (
    "Request shape and promises: INPUT,OUTPUT[,ttft=1s,itl=50ms,e2e=20s,at=p95], lengths in tokens."
)

_FIELDS: Final = {"ttft": "ttft_s", "itl": "itl_s", "tpot": "itl_s", "e2e": "e2e_s", "at": "at"}
_LENGTHS: Final = 2
_DEGREES: Final = ("tp", "pp", "dp", "ep")
_MOST_RANKS: Final = 4096
_ENGINES: Final = ("vllm", "sglang", "trtllm")


def parse_slo(text: str, *, option: str = "--slo") -> Slo:
    """Promises as people write them.

    Raises:
        ConfigurationError: an unknown promise, or a value that is none; lists all.
    """
    return _slo([part.strip() for part in text.split(",") if part.strip()], option)


def parse_at(text: str, *, option: str = "--at") -> tuple[int, int, Slo]:
    """Input and output length in tokens, and promises.

    Raises:
        ConfigurationError: lengths that are none, or as :func:`parse_slo`; lists all.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    lengths = [_tokens(part) for part in parts[:_LENGTHS]]
    if len(lengths) < _LENGTHS or None in lengths:
        finding = Finding(
            "", None, option, repr(text), "INPUT,OUTPUT and promises: 4096,1024,ttft=3s,itl=50ms,at=p95"
        )
        raise ConfigurationError.from_findings([finding])
    given = [length for length in lengths if length is not None]
    return given[0], given[1], _slo(parts[_LENGTHS:], option)


def parse_variant(text: str) -> tuple[str, str, dict[str, object]]:
    """LLM, accelerator and the fields of a variant that one word of the command line states.

    Raises:
        ConfigurationError: it is not in :data:`VARIANT_FORM`; lists everything that is wrong.
    """
    llm, _, rest = text.partition("@")
    accelerator, _, words = rest.partition(":")
    fields: dict[str, object] = {"id": "asked", "accelerator": accelerator}
    parallelism: dict[str, int] = {}
    quantization: dict[str, str] = {}
    findings = [] if llm and accelerator else [Finding("", None, "NAME", repr(text), VARIANT_FORM)]
    for word in (each.strip().lower() for each in words.split(",") if each.strip()):
        degree = word[2:]
        if word[:2] in _DEGREES and degree.isdigit() and 1 <= int(degree) <= _MOST_RANKS:
            parallelism[word[:2]] = int(degree)
        elif word in set(Precision):
            quantization["weights"] = word
        elif word.removeprefix("kv=") in set(Precision) and word.startswith("kv="):
            quantization["kv_cache"] = word.removeprefix("kv=")
        elif word in set(Role):
            fields["role"] = word
        elif word in _ENGINES:
            fields["engine"] = word
        else:
            known = [*_DEGREES, *map(str, Precision), *map(str, Role), *_ENGINES]
            findings.append(Finding("", None, "NAME", repr(word), VARIANT_FORM, nearest(word, known)))
    if findings:
        raise ConfigurationError.from_findings(findings)
    return llm, accelerator, fields | {"parallelism": parallelism, "quantization": quantization}


def _tokens(part: str) -> int | None:
    folded = part.lower().removesuffix("tokens").strip()
    scale = 1000 if folded.endswith("k") else 1
    try:
        length = float(folded.removesuffix("k")) * scale
    except ValueError:
        return None
    return int(length) if length == int(length) and 1 <= length <= 10**8 else None


def _slo(parts: list[str], option: str) -> Slo:
    fields: dict[str, str] = {}
    findings: list[Finding] = []
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        field = _FIELDS.get(name.lower())
        if not equals or field is None:
            findings.append(
                Finding("", None, option, repr(part), "ttft=, itl=, e2e= or at=", nearest(name, _FIELDS))
            )
        elif field in fields:
            findings.append(Finding("", None, option, f"{name} twice", "each promise once"))
        else:
            fields[field] = value.lower().removeprefix("p") if field == "at" else value
    try:
        slo = Slo.model_validate(fields)
    except ValidationError as cause:
        names = {field: name for name, field in reversed(_FIELDS.items())}
        for error in cause.errors(include_url=False):
            field = str(error["loc"][0])
            allowed = "p50, p95, p99 or mean" if field == "at" else allowed_by(error)
            findings.append(
                Finding("", None, option, f"{names.get(field, field)}={fields.get(field)}", allowed)
            )
        findings = list(dict.fromkeys(findings))
    if findings:
        raise ConfigurationError.from_findings(findings)
    return slo
