"""Steps in which an elastic deployment changes its size: no object says that, so people are told what does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from models.elastic import LoadBalancing, ResizeMode
from models.plan import Step
from models.problem import Problem, Resize
from planner.elastic.dialects import calls_of, curl_of

__all__ = ["elastic_variants", "is_told", "resize_calls", "resize_sentence", "resized_to"]

_IN_PLACE: Final = frozenset({ResizeMode.BLOCKING, ResizeMode.ASYNC, ResizeMode.ASYNC_GRAPH_REUSE})
_ADDRESS: Final = "http://ADDRESS:8000"


def elastic_variants(problem: Problem) -> frozenset[tuple[str, str]]:
    """Services and variants that may change their size, all their sizes among them.

    Their objects count what a size is made of, not replicas as a plan counts them; so no count of theirs is written.
    """
    ways = [(c, c.resize) for c in problem.candidates if c.resize is not None]
    named = {(c.service, _deployment(c.variant, resize)) for c, resize in ways}
    found = {(c.service, c.variant) for c, _ in ways}
    found |= {
        (problem.candidate[resize.of].service, problem.candidate[resize.of].variant) for _, resize in ways
    }
    return frozenset(found | named | {(service, f"{variant}:new") for service, variant in named})


def _deployment(variant: str, resize: Resize) -> str:
    """The variant as the scenario names it, of the name of a way: ``moe`` of ``moe:16-20-C``."""
    named = variant.rpartition(f":{resize.from_ranks}-{resize.to_ranks}-{resize.mode.value}")[0]
    return named or resize.of.partition("@")[0].partition("/")[2]


def is_told(step: Step) -> bool:
    """Whether a step is to be told of: of the two sides of a change of size the one that knows how."""
    return step.before != step.after and not step.is_other_side


def resize_sentence(step: Step, resize: Resize) -> str:
    """What changes, and which command does it."""
    before, after = step.ranks or (resize.from_ranks, resize.to_ranks)
    what = f"{step.count} × {resize.of} from {before} to {after} ranks by {resize.mode.value}"
    times = f"about {resize.lead_s:.0f} s, {resize.downtime_s:.2g} s of them without service"
    if resize.mode is ResizeMode.REDEPLOY:
        how = f"launch it anew with {after} ranks, send its requests there, then end the old one"
    elif resize.mode is ResizeMode.RESTART:
        how = f"stop it, and start it with {after} ranks"
    else:
        place = f"{step.service}/{_deployment(step.variant or '', resize)}@{step.pool}"
        url = "" if resize.url else " --url URL"
        how = f"fleetplan elastic resize SCENARIO --variant {shlex.quote(place)} --to {after}{url} --record FILE --yes"
    return f"Not done here: {what} ({times}): {how}"


def resized_to(step: Step, resize: Resize) -> str:
    """What it is once that is done."""
    return f"{resize.of} at {(step.ranks or (0, resize.to_ranks))[1]} ranks"


def resize_calls(step: Step, resize: Resize) -> Iterator[str]:
    """What that command sends, once, with accelerators there before and traffic after; nothing where nothing is sent."""
    if resize.engine is None or resize.mode not in _IN_PLACE:
        return
    before, after = step.ranks or (resize.from_ranks, resize.to_ranks)
    joins = f"have accelerators under ranks {before} to {after - 1} first, and route to them when all answer as before"
    leaves = f"take requests from ranks {after} to {before - 1} first, and end their pods when the others answer as before"
    yield f"It sends, once ({joins if after > before else leaves}):"
    for call in calls_of(resize.engine, [resize.url or _ADDRESS], after):
        yield f"  {curl_of(call)}"
    if resize.engine.load_balancing is LoadBalancing.EXTERNAL:
        yield f"  and the same to the API server of each other of the {before} ranks, all at once"
