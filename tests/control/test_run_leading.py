"""Who leads: leases by nobody's clock but one's own, take-over in time, and nothing written by whoever does not lead."""

from __future__ import annotations

from typing import Any

import pytest

from models.controller import LeaseSettings
from planner.clock import FakeClock
from planner.control.cluster import Api, ClusterFault, Limits, MemoryCluster, Trouble
from planner.control.cluster.kinds import DEPLOYMENTS, LEASES
from planner.control.cluster.transport import Call
from planner.control.running.fencing import Fenced
from planner.control.running.leading import LeaseElection, identity
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.control.test_run_cycles import SCALES, direct

PLACE = ("prod", "fleetplan")


def an_election(cluster: MemoryCluster, who: str, clock: FakeClock, **lease: Any) -> LeaseElection:
    api = Api(cluster, clock, None, Limits(tries=1))
    return LeaseElection(api, LeaseSettings(**lease), place=PLACE, who=who, clock=clock)


def spec(cluster: MemoryCluster) -> dict[str, Any]:
    return dict(cluster._objects[LEASES.group, LEASES.plural, *PLACE]["spec"])


class TestLeases:
    def test_the_first_leads_and_the_second_waits(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        one, two = an_election(cluster, "one", clock), an_election(cluster, "two", clock)
        assert one.step() is None
        assert two.step() is None
        assert (one.leading, two.leading, two.holder) == (True, False, "one")
        assert spec(cluster)["leaseDurationSeconds"] == 15

    def test_a_leader_that_dies_is_replaced_within_lease_and_retry(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        one, two = an_election(cluster, "one", clock), an_election(cluster, "two", clock)
        one.step()
        waited_s = 0.0
        while not two.leading:
            two.step()
            clock.advance(2)
            waited_s += 2
        assert 15 <= waited_s <= 15 + 2 + 2
        assert not one.leading
        assert spec(cluster)["leaseTransitions"] == 1

    def test_two_never_lead_at_once_however_they_renew(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        both = [an_election(cluster, who, clock) for who in ("one", "two")]
        for second in range(600):
            for number, each in enumerate(both):
                # Each is deaf for long times, at different ones.
                if (second // (40 + 17 * number)) % 2 == number % 2 and second % 2 == 0:
                    each.step()
            assert sum(each.leading for each in both) <= 1
            clock.advance(1)

    @pytest.mark.parametrize("off_s", [-86_400.0, 86_400.0], ids=["a day behind", "a day ahead"])
    def test_a_clock_that_is_off_neither_steals_nor_loses_the_lead(self, off_s: float) -> None:
        cluster = MemoryCluster()
        right, wrong = FakeClock(START), FakeClock(START + off_s)
        one, two = an_election(cluster, "one", right), an_election(cluster, "two", wrong)
        for _ in range(60):
            one.step()
            two.step()
            assert (one.leading, two.leading) == (True, False)
            right.advance(2)
            wrong.advance(2)

    def test_a_leader_that_cannot_renew_stops_by_itself_before_others_may_begin(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        one = an_election(cluster, "one", clock)
        one.step()
        clock.advance(9.9)
        assert one.leading
        clock.advance(0.2)
        assert not one.leading

    def test_a_lead_that_is_given_back_is_taken_at_once(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        one, two = an_election(cluster, "one", clock), an_election(cluster, "two", clock)
        one.step()
        two.step()
        one.release()
        two.step()
        assert (one.leading, two.leading) == (False, True)

    def test_whoever_lost_it_does_not_give_back_what_another_holds(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        one, two = an_election(cluster, "one", clock), an_election(cluster, "two", clock)
        one.step()
        two.step()
        clock.advance(20)
        two.step()
        one.release()
        assert spec(cluster)["holderIdentity"] == "two"

    def test_of_two_that_reach_for_it_at_once_the_api_lets_one(self) -> None:
        cluster, clock = MemoryCluster(), FakeClock(START)
        one, two = an_election(cluster, "one", clock), an_election(cluster, "two", clock)

        def first_the_other(call: Call) -> None:
            if call.method == "POST":
                cluster.before = lambda _: None
                two.step()

        cluster.before = first_the_other  # type: ignore[assignment]
        assert one.step() is None
        assert (one.leading, two.leading) == (False, True)

    def test_a_denial_names_the_missing_rule(self) -> None:
        found = an_election(MemoryCluster(denied={("create", "leases")}), "one", FakeClock(START)).step()
        assert found is not None
        assert "create" in found.remedy
        assert "leases" in found.remedy

    @pytest.mark.parametrize("nonsense", [None, -3, 0, 10**12, "soon"], ids=str)
    def test_a_lease_with_a_nonsense_length_is_waited_for_as_long_as_ours(self, nonsense: Any) -> None:
        clock = FakeClock(START)
        lease = {
            "kind": "Lease",
            "metadata": {"name": "fleetplan", "namespace": "prod"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": nonsense, "renewTime": "whenever"},
        }
        two = an_election(MemoryCluster([lease]), "two", clock)
        two.step()
        clock.advance(14)
        two.step()
        assert not two.leading
        clock.advance(2)
        two.step()
        assert two.leading

    def test_names_of_controllers_differ_between_starts(self) -> None:
        assert identity(FakeClock(START)) != identity(FakeClock(START + 0.001))

    def test_times_that_would_let_two_lead_are_refused(self) -> None:
        with pytest.raises(ValueError, match="two might lead"):
            LeaseSettings(lease_s=10, renew_s=10)


class TestTwoControllers:
    def test_one_acts_and_after_its_death_the_other_goes_on(self) -> None:
        cluster, clock = direct(), FakeClock(START)
        one = a_controller(cluster, Told(kv=0.78), SCALES, clock=clock, who="one")
        two = a_controller(cluster, Told(kv=0.78), SCALES, clock=clock, who="two")
        assert one.elect()
        assert not two.elect()
        one.cycle(("timer",))
        assert cluster.replicas() == 3
        cluster.settle()
        clock.advance(17)
        assert two.elect()
        assert b"wva_desired_replicas{" not in one.metrics(None)
        two.cycle(("timer",))
        assert cluster.replicas() == 4
        before = len(cluster.writes)
        one.cycle(("timer",))
        assert len(cluster.writes) == before

    def test_what_another_leader_wrote_was_not_set_by_hand(self) -> None:
        cluster, clock = direct(), FakeClock(START)
        one = led(a_controller(cluster, Told(kv=0.5), SCALES, clock=clock, who="one"))
        one.cycle(("timer",))
        two = a_controller(cluster, Told(kv=0.78), SCALES, clock=clock, who="two")
        two.elect()
        clock.advance(17)
        led(two).cycle(("timer",))
        cluster.settle()
        one.elect()
        two.end()
        led(one).cycle(("timer",))
        assert cluster.replicas() == 3
        assert "fleetplan.dev/held" not in cluster.thing("deployments", "llama", "apps")["metadata"].get(
            "annotations", {}
        )
        assert [row.reason for row in one.loop.rows.values()] != ["HeldByPeople"]

    def test_a_lead_that_is_lost_in_the_middle_of_writing_stops_there(self) -> None:
        cluster, clock = direct(), FakeClock(START)
        one = led(a_controller(cluster, Told(kv=0.78), SCALES, clock=clock))

        def slow(call: Call) -> None:
            if call.path.endswith("/scale") and call.method == "GET":
                clock.advance(11)

        cluster.before = slow  # type: ignore[assignment]
        record = one.cycle(("timer",))
        assert cluster.replicas() == 2
        assert any("may not write now" in each.message for each in record.outcomes)

    def test_the_gauge_goes_with_the_lead(self) -> None:
        clock = FakeClock(START)
        one = led(a_controller(Served(), Told(kv=0.5), clock=clock))
        one.cycle(("timer",))
        assert b"wva_desired_replicas{" in one.metrics(None)
        clock.advance(11)
        assert b"wva_desired_replicas{" not in one.metrics(None)

    def test_a_dry_run_beside_one_that_acts_leaves_it_the_lead(self) -> None:
        cluster, clock = Served(), FakeClock(START)
        acting = led(a_controller(cluster, Told(), clock=clock, who="acts"))
        led(a_controller(cluster, Told(), "act: false", clock=clock, who="tries")).cycle(("timer",))
        acting.elect()
        assert acting.parts.election.leading

    def test_the_end_gives_the_lead_back(self) -> None:
        cluster, clock = Served(), FakeClock(START)
        one = led(a_controller(cluster, clock=clock, who="one"))
        one.end()
        assert a_controller(cluster, clock=clock, who="two").elect()


class TestFence:
    @pytest.mark.parametrize("allowed", [True, False])
    def test_writes_pass_only_while_we_may(self, allowed: bool) -> None:
        cluster = Served()
        api = Api(Fenced(cluster, lambda: allowed), FakeClock(START), None, Limits(tries=1))
        assert api.get(DEPLOYMENTS, "prod", "llama")
        api.scale(DEPLOYMENTS, "prod", "llama", 5, dry_run=True)
        if allowed:
            api.scale(DEPLOYMENTS, "prod", "llama", 5)
        else:
            with pytest.raises(ClusterFault, match="may not write now") as fault:
                api.scale(DEPLOYMENTS, "prod", "llama", 5)
            assert fault.value.trouble is Trouble.INVALID
        assert cluster.replicas() == (5 if allowed else 2)
