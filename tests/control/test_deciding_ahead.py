"""Forecasts in deciding: days are replayed; a service is ready a lead time before its wave, and never with fewer replicas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import ValidationError

from models.controller import ControllerSettings
from models.observation import Observation
from planner.clock import FakeClock
from planner.control.analysis import Ahead, AnalysisMemory, analyze, foretold, grown, ref_of
from planner.control.deciding import Decided, Decider, DecidingState, Verdict
from planner.control.deciding import foresight as module
from planner.control.deciding.foresight import Foresight
from planner.control.deciding.scenario_problem import demand_rps
from planner.control.deciding.starting import FIRST_S, StartTimes
from planner.forecasting import History
from tests.observed_fleets import KV_TOKENS, NO_TRAFFIC, a_pool, a_variant, engines_of, observed, some_traffic

STEP_S = 1800.0
DAY = 48
LEAD = 3
"""Steps."""
TOKENS_OF_A_REQUEST = 4_000.0
FORECAST = {
    "forecast": True,
    "forecast_lead_s": LEAD * STEP_S,
    "stabilize_down_s": 0.0,
}
Rate = Callable[[int], float]


def settings(policy: str = "planner", **rules: Any) -> ControllerSettings:
    top = {name: rules.pop(name) for name in ("overrides", "forecasting", "policies") if name in rules}
    return ControllerSettings.model_validate(
        {
            "cycle_s": STEP_S,
            "forecasting": {"step_s": STEP_S, "history_s": 3 * 86_400, "budget_s": 0.2},
            "rules": {"stabilize_down_s": 0.0, "policy": policy, **rules},
            **top,
        }
    )


def office(step: int) -> float:
    """Ten requests a second, thirty from eight to eighteen."""
    return 30.0 if 16 <= step % DAY < 36 else 10.0


def wave(step: int) -> float:
    return 20.0 + 15.0 * math.sin(2 * math.pi * step / DAY)


@dataclass
class Days:
    """A service whose replicas are there in the next step, and what is decided for it, step by step."""

    given: ControllerSettings
    rate: Rate
    told: Callable[[int], float | None] | None = None
    replicas: int = 3
    step: int = 0
    clock: FakeClock = field(default_factory=lambda: FakeClock(1_000_000 * STEP_S))
    state: DecidingState = field(default_factory=DecidingState)
    last: Decided | None = None

    def __post_init__(self) -> None:
        self.decider = Decider(clock=self.clock)

    def seen(self, replicas: int) -> Observation:
        tokens = self.rate(self.step) * TOKENS_OF_A_REQUEST
        variant = a_variant(ready=replicas, max_replicas=60)
        usage = min(1.0, tokens / replicas / KV_TOKENS)
        arrivals = self.rate(self.step) if self.told is None else self.told(self.step)
        return observed(
            [variant],
            engines_of(variant, (usage, 0.0)),
            traffic=[some_traffic(**(NO_TRAFFIC if arrivals == 0 else {"arrival_rps": arrivals}))],
            pools=[a_pool(nodes=16)],
            at_s=self.clock.unix_s(),
        )

    def decide(self, replicas: int) -> int:
        """What is decided with so many replicas, at the next step."""
        self.clock.sleep(STEP_S)
        self.last, self.state = self.decider.decide(
            self.seen(replicas), state=self.state, settings=self.given, now_s=self.clock.unix_s()
        )
        self.step += 1
        return self.last.decisions[0].desired

    def days(self, count: float) -> list[int]:
        """Replicas that are there, by step."""
        there = []
        for _ in range(round(count * DAY)):
            there.append(self.replicas)
            self.replicas = max(1, self.decide(self.replicas))
        return there

    @property
    def verdict(self) -> Verdict:
        assert self.last is not None
        return self.last.verdicts[0]

    @property
    def ahead(self) -> Ahead:
        assert self.last is not None
        return self.last.ahead[0]


class TestBeforeTheWave:
    @pytest.mark.parametrize("policy", ["planner", "wva-v2"])
    def test_what_comes_every_day_is_met_a_lead_time_before(self, policy: str) -> None:
        foretold, reactive = Days(settings(policy, **FORECAST), office), Days(settings(policy), office)
        with_it, without = foretold.days(4), reactive.days(4)
        begins = 3 * DAY + 16
        enough = max(without[-DAY:])
        assert without[begins] < enough
        assert with_it[begins] >= enough
        # Ordered a lead time before, there one step later; not half a day before.
        assert with_it[begins - LEAD + 1] >= enough
        assert with_it[begins - 2 * LEAD] < enough

    def test_a_smooth_wave_is_never_met_with_fewer(self) -> None:
        foretold = Days(settings(**FORECAST), wave)
        reactive = Decider(clock=foretold.clock)
        state, plain = DecidingState(), settings()
        grew = 0
        for _ in range(4 * DAY):
            before, replicas = foretold.seen(foretold.replicas), foretold.replicas
            foretold.replicas = foretold.decide(replicas)
            decided, state = reactive.decide(
                before, state=state, settings=plain, now_s=foretold.clock.unix_s()
            )
            assert foretold.replicas >= decided.decisions[0].desired
            grew += foretold.replicas > decided.decisions[0].desired
        assert grew > DAY // 4

    def test_replicas_that_are_needed_soon_do_not_go(self) -> None:
        """A short lull that comes every day: who knows that it ends soon keeps what it has."""

        def lull(step: int) -> float:
            return 10.0 if step % DAY in (30, 31) else 30.0

        foretold, reactive = Days(settings(**FORECAST), lull), Days(settings(), lull)
        with_it, without = foretold.days(3.8), reactive.days(3.8)
        begins = 3 * DAY + 31
        assert without[begins] < without[begins - 1]
        assert with_it[begins] >= with_it[begins - 1]

    def test_token_demand_counts_where_nobody_tells_what_arrives(self) -> None:
        days = Days(settings(**FORECAST), office, told=lambda _: None)
        there = days.days(3 + 16 / DAY)
        assert days.ahead.unit == "token"
        assert days.ahead.method
        assert there[-1] > there[-2 * LEAD]

    def test_the_record_says_what_is_planned_for(self) -> None:
        days = Days(settings(**FORECAST), office)
        days.days(3 + 15 / DAY)
        assert days.ahead.growth == pytest.approx(3.0, rel=0.05)
        assert days.verdict.expected == pytest.approx(3 * days.verdict.demand, rel=0.05)


class TestWhenItDoesNotCount:
    def test_off_changes_no_byte(self) -> None:
        """Rules of the forecast that nobody asked for, and a decider that looked ahead before."""
        off = Days(settings(forecast_quantile=0.99, forecast_most=9.0), office)
        never = Days(settings(), office)
        for _ in range(DAY):
            off.replicas, never.replicas = off.decide(off.replicas), never.decide(never.replicas)
            assert off.last == never.last
            assert off.state.to_json() == never.state.to_json()
        assert off.last is not None
        assert off.last.ahead == ()
        assert "forecast" not in off.last.decisions[0].facts

    def test_a_service_is_asked_for_by_itself(self) -> None:
        days = Days(settings(overrides=[{"model": "llm", **FORECAST}]), office)
        days.days(3 + 15 / DAY)
        assert days.ahead.method
        other = Days(settings(overrides=[{"model": "other", **FORECAST}]), office)
        other.days(0.1)
        assert other.last is not None
        assert other.last.ahead == ()

    def test_at_first_there_is_no_history(self) -> None:
        days = Days(settings(**FORECAST), office)
        days.decide(3)
        assert "no history" in days.verdict.forecast
        assert (days.verdict.expected, days.ahead.growth) == (None, 1.0)

    def test_a_restart_begins_without_a_past_and_says_so(self) -> None:
        days = Days(settings(**FORECAST), office)
        days.days(3.3)
        assert days.ahead.method
        days.decider = Decider(clock=days.clock)
        days.state = DecidingState.from_json(days.state.to_json())
        days.decide(days.replicas)
        assert "no history" in days.ahead.why_not

    def test_what_the_past_does_not_bear_out_is_not_acted_on(self) -> None:
        """A calm that ends in jumps without any order."""
        draw = iter(range(10**6))

        def wild(step: int) -> float:
            return 10.0 if step < 2 * DAY else 1.0 + (next(draw) * 7919 % 101) ** 1.2

        rates = [wild(step) for step in range(4 * DAY)]
        days = Days(settings(**FORECAST), lambda step: rates[step])
        days.days(2.5)
        assert "bad" in days.verdict.forecast
        assert days.verdict.expected is None

    def test_metrics_that_fell_silent_are_not_foretold(self) -> None:
        days = Days(settings(**FORECAST), office)
        days.days(3 + 12 / DAY)
        days.told = lambda _: None
        days.decide(days.replicas)
        assert days.ahead.unit == "token"
        assert "no history" in days.ahead.why_not
        days.told = None
        days.decide(days.replicas)
        assert days.ahead.method

    def test_a_cycle_in_which_nothing_is_seen_forgets_nothing(self) -> None:
        days = Days(settings(**FORECAST), office)
        days.days(2.5)
        assert days.ahead.method
        days.clock.sleep(STEP_S)
        _, days.state = days.decider.decide(
            observed([], complete=False), state=days.state, settings=days.given, now_s=days.clock.unix_s()
        )
        days.step += 1
        days.decide(days.replicas)
        assert days.ahead.method

    def test_who_turns_it_off_and_on_begins_anew(self) -> None:
        days = Days(settings(**FORECAST), office)
        days.days(2.5)
        days.given = settings()
        days.decide(days.replicas)
        days.given = settings(**FORECAST)
        days.decide(days.replicas)
        assert "no history" in days.ahead.why_not

    def test_percentages_look_at_no_demand_and_the_record_says_so(self) -> None:
        days = Days(settings("wva", **FORECAST), office)
        days.days(0.2)
        assert "looks at no demand" in days.verdict.forecast
        assert days.ahead.growth == 1.0

    def test_growth_has_a_limit(self) -> None:
        burst = Days(settings(**FORECAST), lambda step: 60.0 if 16 <= step % DAY < 20 else 1.0)
        burst.days(3 + 15 / DAY)
        assert burst.ahead.expected == pytest.approx(60.0, rel=0.05)
        assert burst.ahead.growth == 4.0

    @pytest.mark.parametrize("rate", [math.inf, 1e300, -1.0])
    def test_absurd_rates_never_break_it(self, rate: float) -> None:
        days = Days(settings(**FORECAST), office)
        days.days(2.5)
        seen = days.seen(days.replicas)
        bad = seen.model_copy(
            update={"traffic": tuple(one.model_copy(update={"arrival_rps": rate}) for one in seen.traffic)}
        )
        for _ in range(3):
            days.clock.sleep(STEP_S)
            decided, days.state = days.decider.decide(
                bad, state=days.state, settings=days.given, now_s=days.clock.unix_s()
            )
            assert decided.decisions[0].desired >= 1
            assert decided.ahead[0].growth <= 4.0
            assert not any(one.subject == "forecast" for one in decided.findings)


class TestGrown:
    def service(self, **rules: Any) -> Any:
        variant = a_variant(ready=4)
        seen = observed([variant], engines_of(variant, (0.3, 0.0), itl_s=0.02, ttft_s=0.1))
        voices = {"planner": {"throughput": 1.0, "queueing-model": 1.0}}
        given = settings(**rules)
        return analyze(seen, given, memory=AnalysisMemory(), now_s=0.0, voices=voices)[0].services[0]

    def ahead(self, expected: float | None) -> Ahead:
        return Ahead(namespace="prod", model="llm", unit="req/s", observed=10.0, expected=expected, most=4.0)

    @pytest.mark.parametrize("expected", [None, 0.0, 5.0, 10.0])
    def test_what_does_not_grow_is_as_it_is(self, expected: float | None) -> None:
        service = foretold(self.service(), self.ahead(expected))
        assert grown(service) is service

    def test_every_analyzer_plans_on_the_same_growth(self) -> None:
        now = foretold(self.service(), self.ahead(30.0))
        later = grown(now)
        assert later.tokens.total.demand == pytest.approx(3 * now.tokens.total.demand)
        assert later.tokens.total.supply == now.tokens.total.supply
        assert later.tokens.total.required >= now.tokens.total.required
        assert later.tokens.total.spare < now.tokens.total.spare
        assert later.seen.traffic.arrival_rps == pytest.approx(30.0)
        for name, one in now.others.items():
            assert later.others[name].total.demand == pytest.approx(3 * one.total.demand)
        for before, after in zip(now.reading.voices, later.reading.voices, strict=True):
            assert (before.name, before.live, before.score) == (after.name, after.live, after.score)
            for role, spare in after.spare.items():
                assert spare <= before.spare[role]
        assert now.reading.voices

    def test_a_plan_with_a_scenario_takes_the_rate_that_comes(self) -> None:
        now = foretold(self.service(), self.ahead(30.0))
        assert demand_rps(grown(now), drain_s=60.0) == pytest.approx(
            3 * (demand_rps(now, drain_s=60.0) or 0.0)
        )
        silent = now.seen.traffic._replace(arrival_rps=None)
        now = replace(now, seen=replace(now.seen, traffic=silent))
        assert demand_rps(grown(now), drain_s=60.0) == pytest.approx(3 * 4.0)


class TestSettings:
    def test_a_season_that_is_not_kept_twice_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="twice is more than"):
            ControllerSettings.model_validate({"rules": {"forecast": True, "forecast_season_s": 604_800}})
        with pytest.raises(ValidationError, match=r"overrides\[0\]"):
            ControllerSettings.model_validate(
                {"rules": {"forecast": True}, "overrides": [{"model": "m", "forecast_season_s": 604_800}]}
            )

    @pytest.mark.parametrize("history_s", [60, 10_000_000])
    def test_a_history_of_absurd_length_is_refused(self, history_s: float) -> None:
        with pytest.raises(ValidationError, match="allowed: 10 to 50,000"):
            ControllerSettings.model_validate({"forecasting": {"history_s": history_s, "step_s": 60}})


class TestLead:
    def test_starts_are_timed_and_the_slowest_variant_counts(self) -> None:
        times = StartTimes()
        fast, slow = (ref_of(a_variant(name)) for name in ("fast", "slow"))
        for name, takes_s in (("fast", 60), ("slow", 240)):
            for at_s in range(0, 301, 30):
                times.note([a_variant(name, ready=1 if at_s < takes_s else 2, wanted=2)], float(at_s))
        assert (times.slowest_s([fast]), times.slowest_s([slow])) == (60.0, 240.0)
        assert times.slowest_s([fast, slow]) == 240.0

    def test_one_slow_start_is_forgotten_after_some(self) -> None:
        times, now_s = StartTimes(), 0.0
        for takes_s in (800.0, *([100.0] * 6)):
            times.note([a_variant(ready=1, wanted=2)], now_s)
            times.note([a_variant(ready=2)], now_s + takes_s)
            now_s += 1000.0
        assert 100.0 < times.slowest_s([ref_of(a_variant())]) < 115.0

    def test_what_was_never_seen_to_start_counts_as_five_minutes(self) -> None:
        assert StartTimes().slowest_s([]) == FIRST_S == 300.0

    def test_what_waits_for_a_node_for_hours_says_nothing_of_starts(self) -> None:
        times = StartTimes()
        times.note([a_variant(ready=1, wanted=2)], 0.0)
        times.note([a_variant(ready=2)], 9_000.0)
        assert times.slowest_s([ref_of(a_variant())]) == FIRST_S


class TestSleep:
    def test_who_is_needed_within_the_lead_does_not_sleep(self) -> None:
        ahead = Ahead(namespace="n", model="m", unit="req/s", observed=0.0, expected=0.01, lead_s=300.0)
        assert ahead.wakes
        assert ahead.growth == 1.0
        rare = Ahead(namespace="n", model="m", unit="req/s", observed=0.0, expected=0.001, lead_s=300.0)
        assert not rare.wakes

    def test_a_service_that_sleeps_at_night_stays_awake_before_the_morning(self) -> None:
        def day(step: int) -> float:
            return 5.0 if 16 <= step % DAY < 36 else 0.0

        common = {"scale_to_zero": True, "retention_s": STEP_S}
        counts = {}
        for name, rules in (("with", FORECAST), ("without", {})):
            days = Days(settings(**common, **rules), day)
            days.days(3)
            for _ in range(15):
                days.decide(1)
            counts[name] = days.decide(1)
        assert counts == {"with": 1, "without": 0}


def test_a_thousand_services_take_turns_inside_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted by what it would cost; every service has its turn, and none twice in a step."""
    clock, spent = FakeClock(0.0), {"choice": 0, "look": 0}
    real_choice, real_look = module.chosen, module.looked_again

    def choice(*args: Any, **more: Any) -> Any:
        clock.sleep(0.05)
        spent["choice"] += 1
        return real_choice(*args, **more)

    def look(*args: Any, **more: Any) -> Any:
        clock.sleep(0.0005)
        spent["look"] += 1
        return real_look(*args, **more)

    monkeypatch.setattr(module, "chosen", choice)
    monkeypatch.setattr(module, "looked_again", look)
    given = settings(**FORECAST)
    services = list(_thousand(given))
    foresight = Foresight(clock)
    now_s, chosen_ones = 1_000_000 * STEP_S, 0
    for cycle in range(30):
        before_s, was = clock.monotonic_s(), dict(spent)
        ahead = foresight.look(services, given, now_s=now_s + cycle * STEP_S)
        took_s = clock.monotonic_s() - before_s
        assert len(ahead) == 1000
        # The budget, and what was begun before it was over: of each kind one.
        assert took_s <= 0.2 + 2 * 0.0511 + 0.001
        assert spent["look"] - was["look"] <= 1000 + (spent["choice"] - was["choice"])
        chosen_ones += spent["choice"] - was["choice"]
    assert chosen_ones > 30


def _thousand(given: ControllerSettings) -> Iterator[Any]:
    variants = [a_variant(f"v{n}", ready=1, model=f"llm-{n}") for n in range(1000)]
    engines = [one for variant in variants for one in engines_of(variant, (0.3, 0.0))]
    traffic = [some_traffic(f"llm-{n}") for n in range(1000)]
    seen = observed(variants, engines, traffic=traffic)
    yield from analyze(seen, given, memory=AnalysisMemory(), now_s=0.0)[0].services


def test_a_past_of_a_thousand_services_is_small() -> None:
    history = History(step_s=60, steps=4320)
    for step in range(4400):
        history.note({"a": 1.0}, step * 60.0)
    assert history._rows["a"].means.buffer_info()[1] * 8 < 5 * 4320 * 8 // 4 + 8
