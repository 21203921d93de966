"""From what a user states to what a solver reads: every number resolved, every name an identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from models.explanation import Rejection
from models.ids import PoolId, ServiceId
from models.problem import Candidate, Incumbent, PoolState, Problem, candidate_id
from models.scenario import Scenario
from models.variant import Role
from models.workload import Service
from planner.catalog import Catalog
from planner.errors import ConfigurationError, Finding
from planner.sizing.candidates import Offer, Setting, candidate_of, nowhere, offers, rejection_of
from planner.sizing.contradictions import contradiction_findings
from planner.sizing.demands import demand_of
from planner.sizing.elastic import Expanded, elastic_findings, expanded
from planner.sizing.leftovers import leftover, leftover_findings
from planner.sizing.money import cost_unit, money_findings
from planner.sizing.names import Names, normalized
from planner.sizing.pools import pool_state
from planner.sizing.power import capped_pools, power_findings, resolved_domains
from planner.sizing.ranges import products_in_range
from planner.sizing.rating import Rate, Ratings, rate_by_profiles
from planner.sizing.references import reference_findings
from planner.sizing.running import Running
from planner.sizing.uncarried import uncarried_shapes

__all__ = ["size"]


@products_in_range()
def size(
    scenario: Scenario, catalog: Catalog, *, rate: Rate | None = None, allow_unserved: bool = False
) -> Problem:
    """Turn a scenario into a problem.

    A service none of whose variants can be a candidate is no error: the rejections tell why, and the plan
    will say that its demand is not served. Sequences of the problem are sorted by identity, so two scenarios
    that differ in the order of their lists give the same problem but for ``derived_from``.

    Args:
        scenario: what the user states.
        catalog: accelerators, LLMs and profile tables that it may name.
        rate: who says what one replica can do; None: given figures, then the sources that the scenario chooses.
        allow_unserved: demand is an objective for every service, not a promise.

    Raises:
        ConfigurationError: something in the scenario points nowhere, contradicts itself or leads to a figure out of
            range; every finding at once.
    """
    names = Names(scenario, catalog)
    # Later checks look names up, so they wait until all names are known.
    _refuse(reference_findings(scenario, names, catalog.profiles))
    _refuse(
        (
            *contradiction_findings(scenario, names),
            *power_findings(scenario, names),
            *elastic_findings(scenario, names),
        )
    )
    rate = rate or rate_by_profiles(catalog.profiles, scenario.performance, queueing=catalog.queueing)
    setting = _setting(expanded(normalized(scenario, names), names), names, rate)
    found = [offer for service in _services(setting) for offer in offers(service, setting)]
    counted = [offer for offer in found if offer.refusal is None or offer.tally.on_order]
    priced = [(o.service.id, o.variant.id, o.price) for o in counted if o.price is not None]
    _refuse((*leftover_findings(found, setting), *money_findings(scenario, priced)))
    problem = _problem(setting, found)
    return problem.but(
        cost_unit=cost_unit(price for _, _, price in priced),
        allow_unserved=allow_unserved,
        derived_from=scenario.fingerprint,
    )


def _refuse(findings: Iterable[Finding]) -> None:
    found = tuple(findings)
    if found:
        raise ConfigurationError.from_findings(found)


def _setting(wide: Expanded, names: Names, rate: Rate) -> Setting:
    """Everything that candidates of a normalized scenario share."""
    scenario = wide.scenario
    limits = scenario.limits
    states = (pool_state(p, names.accelerators[p.accelerator], limits.power_basis) for p in scenario.pools)
    pools: dict[PoolId, PoolState] = {state.id: state for state in sorted(states, key=lambda state: state.id)}
    return Setting(
        scenario=scenario,
        names=names,
        pools=pools,
        ratings=Ratings(rate, names),
        running=Running(scenario, pools),
        capped=capped_pools(resolved_domains(scenario)),
        guests=_guests(scenario),
        elastic=wide,
    )


def _guests(scenario: Scenario) -> dict[ServiceId, list[Service]]:
    found: dict[ServiceId, list[Service]] = {}
    for service in scenario.services:
        if service.shares_replicas_of is not None:
            found.setdefault(service.shares_replicas_of, []).append(service)
    return found


def _services(setting: Setting) -> list[Service]:
    return sorted(setting.scenario.services, key=lambda service: service.id)


def _problem(setting: Setting, found: Sequence[Offer]) -> Problem:
    """Everything but the unit of the costs and where the problem is from."""
    scenario, limits = setting.scenario, setting.scenario.limits
    candidates = tuple(sorted(_present(_candidates(setting, found)), key=lambda candidate: candidate.id))
    of_service: dict[ServiceId, list[Candidate]] = {service.id: [] for service in scenario.services}
    for candidate in candidates:
        of_service[candidate.service].append(candidate)
    services = _services(setting)
    return Problem(
        name=scenario.name,
        mode=scenario.mode,
        demands=tuple(demand_of(service, of_service[service.id], setting.pools) for service in services),
        candidates=candidates,
        pools=tuple(setting.pools.values()),
        incumbents=tuple(_incumbents(found)),
        incumbents_rule=limits.incumbents,
        quotas=tuple(sorted(limits.quotas, key=lambda quota: quota.id)),
        power=resolved_domains(scenario),
        power_basis=limits.power_basis,
        spend_usd_per_h=limits.spend_usd_per_h,
        max_changes=limits.max_changes,
        objective=scenario.objective,
        rejected=_rejected(setting, found),
    )


def _candidates(setting: Setting, found: Sequence[Offer]) -> Iterator[Candidate]:
    """Offers that nothing refuses, and what runs although something does."""
    roles: dict[ServiceId, set[Role]] = {service.id: set() for service in setting.scenario.services}
    for offer in found:
        if offer.refusal is None:
            roles[offer.service.id].add(offer.variant.role)
    for offer in found:
        if offer.price is None:
            continue
        if offer.refusal is None and offer.rating is not None:
            yield candidate_of(offer, offer.rating, offer.price, setting)
        elif offer.tally.on_order:
            yield leftover(offer, offer.price, setting, roles=roles[offer.service.id])


def _present(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Ways of elastic replicas only where there are some to go that way."""
    found = list(candidates)
    running = {candidate.id for candidate in found if candidate.current}
    return [c for c in found if c.resize is None or c.resize.of in running]


def _incumbents(found: Sequence[Offer]) -> list[Incumbent]:
    """Seats of the replicas that run, sorted by candidate and nodes."""
    seats = [
        Incumbent(
            candidate=candidate_id(offer.service.id, offer.variant.id, offer.pool.id, offer.domain),
            nodes=nodes,
            count=count,
        )
        for offer in found
        for nodes, count in offer.tally.seats
    ]
    return sorted(seats, key=lambda seat: (seat.candidate, seat.nodes))


def _rejected(setting: Setting, found: Sequence[Offer]) -> tuple[Rejection, ...]:
    """Each rejection once (fabric domains of a pool often share one), sorted."""
    rejections = [rejection_of(offer, offer.refusal) for offer in found if offer.refusal is not None]
    rejections += [rejection for service in _services(setting) for rejection in nowhere(service, setting)]
    rejections += setting.elastic.refused
    rejections += uncarried_shapes(_services(setting), found, setting.ratings)
    by_text = {rejection.canonical_json(): rejection for rejection in rejections}
    return tuple(
        by_text[text]
        for text in sorted(
            by_text,
            key=lambda text: (by_text[text].service, by_text[text].variant, by_text[text].pool or "", text),
        )
    )
