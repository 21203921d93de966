"""What is looked at before a resize is ordered; each refusal says what to change on the server's command line.

Source: validation of vLLM 0.33.0 at its start and at the call, SGLang 0.5.23, Dynamo 1.6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from models.elastic import Dialect, ElasticDeployment, ElasticEngine, ElasticShape, LoadBalancing, ResizeMode
from models.resizing import Preflight, PreflightCheck, PreflightVerdict, SizeReason, SizeRefusal
from planner.elastic.sizes import Room, floor_ranks, judge_size, largest_ranks
from planner.elastic.versions import mode_of, traits_of

__all__ = ["PreflightFacts", "PreflightQuestion", "preflight", "refusal_text"]

_OK, _WARNING, _UNKNOWN, _REFUSED = (
    PreflightVerdict.OK,
    PreflightVerdict.WARNING,
    PreflightVerdict.UNKNOWN,
    PreflightVerdict.REFUSED,
)
_FIXED_MEMBERS_MEMORY: Final = 0.85
_BLOCKING_COMMUNICATORS: Final = ("torch_nccl", "pynccl")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFacts:
    """What the running deployment and its surroundings say; None: nobody said.

    Attributes:
        in_flight: a resize is running, or one has failed and was not cleared.
        free_memory_gb: free memory of the fullest accelerator, GB.
        buffers_gb: communication buffers of one rank, GB.
        router_drains: the router can keep new requests from single ranks.
        room: free accelerators of the nodes.
    """

    in_flight: bool | None = None
    free_memory_gb: float | None = None
    buffers_gb: float | None = None
    router_drains: bool | None = None
    room: Room | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightQuestion:
    """What is to be done, to what.

    Attributes:
        deployment: as it is stated.
        shape: that decides its sizes.
        current: ranks now.
        wanted: ranks that are to be.
        facts: of the moment.
    """

    deployment: ElasticDeployment
    shape: ElasticShape
    current: int
    wanted: int
    facts: PreflightFacts

    @property
    def engine(self) -> ElasticEngine:
        """What it is started as."""
        return self.deployment.engine

    @property
    def shrinks(self) -> bool:
        """Whether ranks leave."""
        return self.wanted < self.current


def preflight(question: PreflightQuestion) -> Preflight:
    """Every check, whatever the others say: all that is to be changed is told at once."""
    return Preflight(checks=tuple(check(question) for check in _CHECKS))


def _said(name: str, verdict: PreflightVerdict, finding: str, change: str = "") -> PreflightCheck:
    return PreflightCheck(name=name, verdict=verdict, finding=finding, change=change)


def _version(question: PreflightQuestion) -> PreflightCheck:
    engine, name = question.engine, "version"
    if engine.dialect is Dialect.SGLANG:
        return _said(name, _OK, f"SGLang {engine.version} grows in place; it cannot shrink.")
    traits = traits_of(engine)
    if traits is not None and traits.checks_sizes:
        return _said(name, _OK, f"vLLM {engine.version} checks sizes and commits in the background.")
    if traits is not None and traits.prepares:
        told = "it does not check sizes itself, and recaptures graphs while it is paused"
        if question.deployment.allow_old_version:
            return _said(name, _WARNING, f"vLLM {engine.version} is allowed by name: {told}.")
        return _said(
            name,
            _REFUSED,
            f"vLLM {engine.version} is older than 0.30: {told}.",
            "run vLLM 0.30 or newer, or set allow_old_version: true for this deployment",
        )
    return _said(
        name,
        _REFUSED,
        f"vLLM {engine.version} serves nobody from the call to its end, and loses count of redundant experts.",
        "run vLLM 0.30 or newer",
    )


def _flags(question: PreflightQuestion) -> PreflightCheck:
    found = list(_wrong_flags(question.engine, question.shape))
    if not found:
        return _said("flags", _OK, "Everything that an elastic deployment must be started with is there.")
    findings, changes = zip(*found, strict=True)
    return _said("flags", _REFUSED, f"{'; '.join(findings)}.", f"start it with {', '.join(changes)}")


def _wrong_flags(engine: ElasticEngine, shape: ElasticShape) -> Iterator[tuple[str, str]]:
    if engine.dialect is Dialect.SGLANG:
        if not engine.elastic:
            yield "elastic sizes are off", "--elastic-ep-backend mooncake and --max-ep-size"
        if engine.pipeline_parallel > 1:
            yield f"pipeline parallel {engine.pipeline_parallel} cannot be resized", "--pp-size 1"
        return
    for holds, finding, change in (
        (engine.elastic, "elastic sizes are off", "--enable-elastic-ep"),
        (engine.expert_parallel, "experts are not spread over ranks", "--enable-expert-parallel"),
        (engine.eplb, "experts are not balanced", "--enable-eplb"),
        (
            engine.pipeline_parallel == 1,
            f"pipeline parallel {engine.pipeline_parallel} cannot be resized",
            "--pipeline-parallel-size 1",
        ),
        (not engine.dual_batch_overlap, "dual batch overlap cannot be resized", "no --enable-dbo"),
        (not engine.draft_model, "a draft model cannot be balanced with experts", "no draft model"),
        (
            engine.nixl or not engine.eplb_async,
            "experts move asynchronously, which needs the NIXL package",
            "nixl installed, or --eplb-config.use_async false",
        ),
        (
            not (engine.eplb_async and engine.eplb_communicator in _BLOCKING_COMMUNICATORS),
            f"experts move asynchronously, which {engine.eplb_communicator} cannot",
            "no --eplb-config.communicator, or --eplb-config.use_async false",
        ),
        (
            shape.max_ranks is None or shape.max_ranks >= shape.launch_ranks,
            f"the maximum size {shape.max_ranks} is below the launch size {shape.launch_ranks}",
            f"--elastic-ep-max-dp-size {shape.launch_ranks} or more",
        ),
    ):
        if not holds:
            yield finding, change


def _spreading(question: PreflightQuestion) -> PreflightCheck:
    engine, name = question.engine, "load balancing"
    if engine.dialect is Dialect.SGLANG:
        return _said(name, _OK, "One server spreads requests.")
    if engine.load_balancing is LoadBalancing.HYBRID:
        return _said(
            name,
            _REFUSED,
            "Hybrid load balancing cannot be resized.",
            "drop --data-parallel-hybrid-lb; use --data-parallel-external-lb or the ray backend",
        )
    if engine.load_balancing is LoadBalancing.EXTERNAL:
        return _external(question)
    if engine.data_parallel_backend != "ray":
        return _said(
            name,
            _REFUSED,
            f"With one API server for all ranks, the backend must be ray, not {engine.data_parallel_backend}.",
            "--data-parallel-backend ray",
        )
    if engine.api_servers > 1:
        return _said(
            name,
            _WARNING,
            f"Of {engine.api_servers} API servers the engine keeps one.",
            "--api-server-count 1",
        )
    return _said(name, _OK, "One API server on ray: one call resizes all ranks.")


def _external(question: PreflightQuestion) -> PreflightCheck:
    engine, name = question.engine, "load balancing"
    if engine.dialect is Dialect.DYNAMO:
        return _said(
            name,
            _REFUSED,
            "Dynamo resizes with the ray backend alone.",
            "--data-parallel-backend ray, without --data-parallel-external-lb",
        )
    traits = traits_of(engine)
    if traits is None or not traits.external:
        return _said(
            name,
            _REFUSED,
            f"vLLM {engine.version} cannot resize with one API server for each rank.",
            "run vLLM 0.33 or newer, or drop --data-parallel-external-lb and use the ray backend",
        )
    return _said(name, _OK, "One API server for each rank: the same call goes to all of them at once.")


def _backend(question: PreflightQuestion) -> PreflightCheck:
    mode, engine = mode_of(question.engine), question.engine
    if mode is None:
        return _said("backend", _UNKNOWN, "Without elastic sizes the backend decides nothing.")
    if mode is ResizeMode.ASYNC_GRAPH_REUSE:
        return _said(
            "backend", _OK, f"{engine.all2all_backend} keeps graphs: the commit takes about a second."
        )
    return _said(
        "backend",
        _WARNING,
        f"{engine.all2all_backend} with {engine.version} recaptures graphs while nobody is served: about a minute.",
        "--all2all-backend nixl_ep, on vLLM 0.30 or newer",
    )


def _memory(question: PreflightQuestion) -> PreflightCheck:
    engine, facts, name = question.engine, question.facts, "transient memory"
    if engine.all2all_backend == "nixl_ep":
        return _said(name, _OK, "Buffers of nixl_ep are made for the maximum size at launch.")
    told = f"{engine.all2all_backend} holds old and new buffers at once while it is resized"
    change = "--gpu-memory-utilization 0.8, or --all2all-backend nixl_ep"
    if facts.free_memory_gb is not None and facts.buffers_gb is not None:
        fits = facts.free_memory_gb >= facts.buffers_gb
        finding = f"{told}: {facts.buffers_gb:g} GB are needed, {facts.free_memory_gb:g} GB are free."
        return _said(name, _OK if fits else _REFUSED, finding, "" if fits else change)
    if engine.memory_utilization > _FIXED_MEMBERS_MEMORY:
        used = f"{engine.memory_utilization:.0%}".replace("%", " %")
        return _said(name, _WARNING, f"{told}; {used} of the memory is taken by the engine.", change)
    return _said(name, _UNKNOWN, f"{told}; nobody said how large they are.")


def _size(question: PreflightQuestion) -> PreflightCheck:
    verdict = judge_size(
        question.shape,
        question.wanted,
        engine=question.engine,
        current=question.current,
        room=question.facts.room,
    )
    if question.wanted == question.current:
        return _said("size", _OK, f"It has {question.current} ranks already; the call would change nothing.")
    if verdict.reachable:
        copies = f"{verdict.redundant_experts} redundant experts"
        return _said("size", _OK, f"{question.wanted} ranks hold every expert, with {copies}.")
    texts = [refusal_text(each) for each in verdict.refusals]
    return _said("size", _REFUSED, " ".join(texts), _size_change(question))


def _size_change(question: PreflightQuestion) -> str:
    shape, wanted = question.shape, question.wanted
    most = largest_ranks(shape, question.engine)
    if wanted > most and shape.max_ranks is not None and wanted > shape.max_ranks:
        return f"launch with --elastic-ep-max-dp-size {wanted} or more"
    if wanted > most and shape.max_ranks is None:
        return f"launch with --elastic-ep-max-dp-size {wanted} (without it the launch size is the maximum)"
    if wanted < floor_ranks(shape):
        needed = -(-shape.experts * shape.launch_ranks // max(1, wanted)) - shape.experts
        step = shape.launch_ranks * shape.tensor_parallel
        whole = -(-(shape.experts + needed) // step) * step - shape.experts
        return (
            f"launch at {wanted} ranks, or with --eplb-config.num_redundant_experts {whole}; "
            f"or redeploy at {wanted} ranks"
        )
    return ""


def _room(question: PreflightQuestion) -> PreflightCheck:
    name, joiners = "accelerators", question.wanted - question.current
    if joiners <= 0:
        return _said(name, _OK, "Nothing joins.")
    if question.facts.room is None:
        tp = question.shape.tensor_parallel
        return _said(name, _UNKNOWN, f"Nobody said whether {joiners} × {tp} accelerators are free.")
    seats = question.facts.room.seats(question.shape.tensor_parallel)
    if seats >= joiners:
        return _said(name, _OK, f"{joiners} ranks join; there is room for {seats} in the fabric domain.")
    return _said(
        name,
        _REFUSED,
        f"{joiners} ranks join; there is room for {seats} in the fabric domain.",
        "free accelerators on nodes of its fabric domain first",
    )


def _in_flight(question: PreflightQuestion) -> PreflightCheck:
    name, running = "operation in flight", question.facts.in_flight
    if running is None:
        told = "With one API server the preparation of a resize shows nowhere; our own lock is all there is."
        rich = (traits := traits_of(question.engine)) is not None and traits.tells_phase
        return _said(name, _UNKNOWN, "Its status was not asked for." if rich else told)
    if running:
        return _said(
            name,
            _REFUSED,
            "A resize is running, or one failed and was not cleared.",
            "wait for it; after a failed one restart at the last good size",
        )
    return _said(name, _OK, "No resize is running.")


def _guard(question: PreflightQuestion) -> PreflightCheck:
    name = "open endpoint"
    if question.engine.guarded:
        return _said(name, _OK, "Something keeps strangers from the resize call.")
    return _said(
        name,
        _WARNING,
        "Whoever reaches the server can resize it: --api-key does not cover this path.",
        "guard /scale_elastic_ep by a NetworkPolicy or a proxy, and say guarded: true",
    )


def _draining(question: PreflightQuestion) -> PreflightCheck:
    name = "draining"
    if not question.shrinks:
        return _said(name, _OK, "No rank leaves.")
    if question.engine.drains or question.facts.router_drains:
        return _said(name, _OK, "Requests on ranks that leave end before they go.")
    told = "Requests on ranks that leave are aborted"
    change = "VLLM_ELASTIC_EP_DRAIN_REQUESTS=1, or a router that can keep requests from single ranks"
    if question.facts.router_drains is None:
        return _said(name, _WARNING, f"{told}, unless the router keeps new ones from them.", change)
    return _said(name, _WARNING, f"{told}.", change)


_CHECKS: Final[tuple[Callable[[PreflightQuestion], PreflightCheck], ...]] = (
    _version,
    _flags,
    _spreading,
    _backend,
    _size,
    _room,
    _memory,
    _in_flight,
    _guard,
    _draining,
)


def refusal_text(refusal: SizeRefusal) -> str:
    """One sentence."""
    return _TEXTS[refusal.reason].format(**refusal.facts)


_TEXTS: Final[dict[SizeReason, str]] = {
    SizeReason.LAUNCH_DOES_NOT_DIVIDE: "{experts} experts and {redundant_experts} copies do not divide over {ep_size} accelerators: it does not start.",
    SizeReason.NOT_ELASTIC: "{version} is not started as an elastic deployment.",
    SizeReason.BELOW_FLOOR: "Fewer than {floor} ranks cannot hold all {experts} experts (launched at {launch_ranks} with {redundant_experts} copies).",
    SizeReason.ABOVE_MAXIMUM: "The maximum size is {maximum} ranks.",
    SizeReason.REDUNDANCY_CAP: "{redundant_experts} copies of experts are more than the {cap} that can be counted.",
    SizeReason.RANK_CAP_OF_VERSION: "{version} holds {cap} expert-parallel ranks at most, not {ep_size}.",
    SizeReason.BELOW_LAUNCH_UNSAFE: "This version loses count of redundant experts: below its launch size of {launch_ranks} experts may be lost.",
    SizeReason.GROWS_ONLY: "It can grow, not shrink below {current}.",
    SizeReason.ONE_RANK_ALONE: "One accelerator alone is no expert-parallel deployment.",
    SizeReason.WHOLE_GROUPS: "Ranks come and go {group} at a time, from {current}.",
    SizeReason.NO_ROOM_ON_NODES: "{joiners} ranks of {gpus_per_rank} accelerators each would join; nodes have room for {seats}.",
    SizeReason.NO_ROOM_IN_FABRIC_DOMAIN: "{joiners} ranks would join; its fabric domain has room for {seats}, other nodes for {seats_elsewhere}.",
}  # fmt: skip
