"""A scenario and counts of its candidates as a fleet that the twin can replay.

Each candidate (a variant in a pool) is a variant of the twin under the candidate's name; each pool is a type of GPU of its
own, with its nodes where every replica sits on one node, else with its number of GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from models.performance import Rating, RatingQuestion
from models.problem import Candidate, Problem
from models.replay import StepSource
from models.scenario import Mode, Scenario
from models.simulation import NodeSpec, ReplicaSpec, RouterSpec, ServiceSpec, TwinSpec
from models.variant import Variant
from models.workload import Service
from planner.errors import ConfigurationError, Finding
from planner.performance import Knowledge, chosen_sources
from planner.performance.power import expected_draw
from planner.performance.step_times import StepTimes, step_times
from planner.picturing import busiest, question_of, scenario_catalog

if TYPE_CHECKING:
    from planner.catalog import Catalog

__all__ = ["GRACE_S", "Fleet", "Playable", "by_thresholds", "playable"]

_PRIORITIES: Final = 1000
GRACE_S: Final = 30.0
_BLOCKS_LEAST: Final = 1


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet to replay.

    Attributes:
        twin: the fleet.
        notes: what could not be taken over as it is.
    """

    twin: TwinSpec
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Playable:
    """Everything of a scenario that replays need, worked out once.

    Attributes:
        scenario: what the user states.
        problem: what it was sized to.
        steps: step times by candidate.
        power: idle draw and what is added at the rated load, W, by candidate; None: unknown.
        hosts: index of the service that serves a service's requests: its own, or the one whose replicas it shares.
        routers: by service.
        grace_s: what a removed replica may take to finish.
    """

    scenario: Scenario
    problem: Problem
    steps: Mapping[str, StepTimes]
    power: Mapping[str, tuple[float, float] | None]
    hosts: tuple[int, ...]
    routers: Mapping[str, RouterSpec]
    grace_s: float

    @property
    def sources(self) -> tuple[StepSource, ...]:
        """Where step times are from."""
        return tuple(
            StepSource(variant=name, origin=each.origin.value, source=each.source)
            for name, each in sorted(self.steps.items())
        )

    @property
    def deployable(self) -> tuple[str, ...]:
        """Candidates that can run, by name."""
        return tuple(sorted(self.steps))

    @property
    def in_flight(self) -> dict[str, float]:
        """Requests in flight on a replica at its rated rate, by candidate; where nobody knows, it is not there."""
        services = {service.id: busiest(service) for service in self.scenario.services}
        found: dict[str, float] = {}
        for candidate in self.problem.candidates:
            steps = self.steps.get(candidate.id)
            if steps is not None and steps.in_flight is not None:
                found[candidate.id] = steps.in_flight
            elif steps is not None and candidate.kv_tokens_per_rps:
                # Little: tokens per req/s are the stay times the tokens that a request holds meanwhile.
                shape = services[candidate.service]
                held = shape.input_tokens + shape.output_tokens / 2
                found[candidate.id] = candidate.rated_rps * candidate.kv_tokens_per_rps / held
        return found

    def fleet(
        self, counts: Mapping[str, int], *, nodes_added: Mapping[str, int], also: frozenset[str]
    ) -> Fleet:
        """The fleet that starts with these counts.

        Args:
            counts: replicas that are ready at the start, by candidate.
            nodes_added: nodes beside those that are there, by pool; a pool that is not named has as many as it may get.
            also: candidates that may be started though none runs at the start.

        Raises:
            ConfigurationError: there is no replica, and none may be started.
        """
        known = {name for name in self.steps if counts.get(name, 0) > 0 or name in also}
        candidates = [c for c in self.problem.candidates if c.id in known]
        served = {c.service for c in candidates}
        services = tuple(self._service(each) for each in self.scenario.services)
        # First fit packs best from the largest to the smallest.
        ordered = sorted(candidates, key=lambda c: (-c.gpus, c.id))
        variants = _variants(self.scenario)
        nodes, gpus = self._room(ordered, nodes_added)
        missing = [c for c in counts if counts[c] > 0 and c not in self.steps]
        notes = [f"{name} runs and is not replayed: nothing rates it" for name in sorted(missing)]
        notes += [
            f"{service.id} has no replica that could serve it"
            for k, service in enumerate(self.scenario.services)
            if service.id not in served and self.hosts[k] == k
        ]
        if not ordered:
            raise ConfigurationError(
                "nothing runs at the start, and no variant can be started: nothing to replay"
            )
        twin = TwinSpec(
            services=services,
            replicas=tuple(
                self._replica(c, variants[c.service, c.variant], count=counts.get(c.id, 0)) for c in ordered
            ),
            nodes=nodes,
            gpus=gpus,
        )
        return Fleet(twin, tuple(notes))

    def _service(self, service: Service) -> ServiceSpec:
        slo = service.slo
        return ServiceSpec(
            name=service.id,
            router=self.routers[service.id],
            priority=max(-_PRIORITIES, min(_PRIORITIES, service.priority)),
            ttft_slo_s=slo.ttft_s,
            itl_slo_s=slo.itl_s,
            e2e_slo_s=slo.e2e_s,
        )

    def _replica(self, candidate: Candidate, variant: Variant, *, count: int) -> ReplicaSpec:
        steps = self.steps[candidate.id]
        demand = self.problem.demand[candidate.service]
        idle_w, busy_w = self.power[candidate.id] or (0.0, 0.0)
        block = variant.engine_arguments.block_tokens
        most = [
            each
            for each in (candidate.max_replicas, variant.max_replicas, demand.max_replicas)
            if each is not None
        ]
        return ReplicaSpec(
            variant=candidate.id,
            service=candidate.service,
            timing=steps.timing,
            kv_blocks=max(_BLOCKS_LEAST, int(steps.kv_tokens // block)),
            block_size=block,
            max_num_seqs=steps.max_requests,
            max_num_batched_tokens=steps.max_tokens,
            prefix_caching=variant.engine_arguments.prefix_caching is not False,
            startup_s=candidate.startup_s,
            grace_s=self.grace_s,
            role=candidate.role,
            gpus=candidate.gpus,
            gpu_type=candidate.pool,
            price_usd_per_h=candidate.cost,
            power_idle_w=idle_w,
            power_busy_w=busy_w,
            min_replicas=min(count, candidate.min_replicas),
            max_replicas=max(min(most), count) if most else None,
            initial_replicas=count,
        )

    def _room(
        self, candidates: list[Candidate], nodes_added: Mapping[str, int]
    ) -> tuple[tuple[NodeSpec, ...], dict[str, int]]:
        """Nodes of each pool, or its GPUs where a replica spans nodes; none where there is no bound."""
        nodes: list[NodeSpec] = []
        gpus: dict[str, int] = {}
        if self.problem.mode is Mode.UNCONSTRAINED:
            return (), {}
        for pool in self.problem.pools:
            free: list[tuple[str, int]] = [
                (node.id, node.free_gpus)
                for node in pool.nodes
                if node.accepts_pods and node.holds_pods and node.free_gpus > 0
            ]
            growth = pool.growth
            if growth is not None:
                added = nodes_added.get(pool.id, growth.max_nodes)
                if added is None:
                    continue
                free += [(f"added-{k}", growth.gpus_per_node) for k in range(added)]
            if any(c.pool == pool.id and c.pods_per_replica > 1 for c in candidates) or not free:
                gpus[pool.id] = sum(count for _, count in free)
                continue
            nodes += [
                NodeSpec(name=f"{pool.id}/{name}", gpu_type=pool.id, gpus=count) for name, count in free
            ]
        return tuple(nodes), gpus


def _variants(scenario: Scenario) -> dict[tuple[str, str], Variant]:
    """Variants by service and name."""
    return {
        (service.id, variant.id): variant for service in scenario.services for variant in service.variants
    }


def playable(
    scenario: Scenario,
    problem: Problem,
    *,
    router: Callable[[Service], RouterSpec] | None = None,
    grace_s: float = GRACE_S,
) -> Playable:
    """Work out what replays of a scenario need.

    Args:
        scenario: what the user states.
        problem: what it was sized to.
        router: of each service; None: as its thresholds say, without flow control.
        grace_s: what a removed replica may take to finish.

    Raises:
        ConfigurationError: nothing says how fast a candidate's steps are; every finding at once.
    """
    catalog, choice = scenario_catalog(scenario), scenario.performance
    knowledge = Knowledge(choice, catalog.profiles, catalog.queueing)
    sources = chosen_sources(choice, catalog.profiles, queueing=catalog.queueing)
    steps: dict[str, StepTimes] = {}
    power: dict[str, tuple[float, float] | None] = {}
    findings: list[Finding] = []
    known: dict[tuple[str, str], tuple[StepTimes, tuple[float, float] | None]] = {}
    for candidate, question in _questions(scenario, problem, catalog):
        key = candidate.service, candidate.variant
        try:
            if key not in known:
                known[key] = step_times(question, knowledge, sources), _power(question, candidate)
        except ConfigurationError as error:
            findings.extend(each for each in error.findings if each not in findings)
            continue
        steps[candidate.id], power[candidate.id] = known[key]
    if findings:
        raise ConfigurationError.from_findings(findings)
    routers: dict[str, RouterSpec] = {each.id: (router or by_thresholds)(each) for each in scenario.services}
    return Playable(scenario, problem, steps, power, _hosts(scenario), routers, grace_s)


def _questions(
    scenario: Scenario, problem: Problem, catalog: Catalog
) -> Iterator[tuple[Candidate, RatingQuestion]]:
    services, variants = {service.id: service for service in scenario.services}, _variants(scenario)
    for candidate in problem.candidates:
        if not candidate.unrated:
            service, variant = services[candidate.service], variants[candidate.service, candidate.variant]
            yield candidate, question_of(service, variant, catalog, bucket=busiest(service))


def _power(question: RatingQuestion, candidate: Candidate) -> tuple[float, float] | None:
    """Idle draw, and what is added while steps run: at the rated rate both are the draw that is known."""
    accelerator, gpus = question.accelerator, question.variant.parallelism.gpus
    stated = question.variant.capacity.power_w
    modeled = expected_draw(question, _as_rating(candidate))
    if modeled is not None:
        idle_w, drawn_w = modeled.idle_w, stated or modeled.power_w
    elif accelerator.idle_w is not None and (stated or accelerator.tdp_w) is not None:
        idle_w, drawn_w = gpus * accelerator.idle_w, stated or gpus * (accelerator.tdp_w or 0.0)
    else:
        return None
    return idle_w, max(0.0, drawn_w - idle_w)


def _as_rating(candidate: Candidate) -> Rating:
    return Rating(
        rated_rps=candidate.rated_rps,
        surge_rps=candidate.surge_rps,
        origin=candidate.origin,
        source=candidate.source,
    )


def by_thresholds(service: Service) -> RouterSpec:
    """The router that fits a service's thresholds, without flow control."""
    thresholds = service.thresholds
    return RouterSpec(saturated_kv=thresholds.tau_kv, saturated_queue=int(thresholds.tau_queue))


def _hosts(scenario: Scenario) -> tuple[int, ...]:
    """Services without variants of their own are served on the replicas that they share."""
    index = {service.id: k for k, service in enumerate(scenario.services)}
    return tuple(
        k if service.variants or service.shares_replicas_of is None else index[service.shares_replicas_of]
        for k, service in enumerate(scenario.services)
    )
