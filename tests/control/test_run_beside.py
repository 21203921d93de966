"""What goes on beside the cycles: waking, shards, events, news that start a cycle, and the server."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from models.controller import ServerSettings, Sharding
from models.controller_status import ControllerStatus
from models.cycle_record import CycleKind
from models.observation import Observation
from planner.clock import FakeClock, SystemClock
from planner.control.cluster import Change, ChangeKind
from planner.control.cluster.kinds import DEPLOYMENTS, NODES
from planner.control.running.asking import asked_status, recorded_status
from planner.control.running.controller import Controller
from planner.control.running.metering import Meters
from planner.control.running.serving import StatusServer, serve
from planner.control.running.sharding import is_ours, shard_of, share_of
from planner.control.running.triggering import Bell, Watches, is_news
from planner.errors import ConfigurationError, PermanentError, TemporaryError
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.control.test_people_first import a_served, two_nodes
from tests.control.test_run_cycles import SCALES, direct, turned
from tests.kube_objects import a_deployment, a_variant_autoscaling


def asleep(**options: Any) -> Served:
    cluster = Served(a_variant_autoscaling(minReplicas=0, maxReplicas=10), replicas=0, **options)
    del cluster._objects["autoscaling", "horizontalpodautoscalers", "prod", "llama-hpa"]
    return cluster


def woken(controller: Controller) -> Any:
    assert controller.waking is not None
    return controller.waking.step(controller.loop)


class TestWaking:
    def test_a_queue_wakes_a_service_at_zero_between_two_cycles(self, tmp_path: Path) -> None:
        cluster, source = asleep(), Told(queued=0.0)
        controller = led(a_controller(cluster, source, SCALES, records=tmp_path))
        turned(controller)
        assert woken(controller) is None
        source.queued = 3.0
        record = woken(controller)
        assert (record.kind, cluster.replicas()) == (CycleKind.WOKEN, 1)
        assert record.decisions[0].reason == "ScaledFromZero"
        assert woken(controller) is None

    def test_nobody_is_asked_while_nothing_sleeps(self) -> None:
        source = Told(queued=3.0)
        controller = led(a_controller(direct(), source, SCALES))
        turned(controller)
        asked = source.asked
        assert woken(controller) is None
        assert source.asked == asked

    def test_what_was_woken_is_not_put_to_sleep_before_its_replica_is_there(self) -> None:
        cluster, source = asleep(), Told(queued=3.0)
        controller = led(a_controller(cluster, source, "actuators: [{name: gauge}]"))
        turned(controller)
        assert woken(controller) is not None
        assert b'variant_name="llama-va"} 1.0' in controller.metrics(None)
        source.queued = 0.0
        turned(controller)
        assert b'variant_name="llama-va"} 1.0' in controller.metrics(None)

    @pytest.mark.parametrize("text", ["paused: true", "freezes: [{}]", "rules: {paused: true}"])
    def test_what_people_hold_stays_asleep(self, text: str) -> None:
        cluster = asleep()
        controller = led(a_controller(cluster, Told(queued=3.0), f"{SCALES}\n{text}"))
        turned(controller)
        assert woken(controller) is None
        assert cluster.replicas() == 0

    def test_without_the_lead_nobody_is_woken(self) -> None:
        cluster, clock = asleep(), FakeClock(START)
        controller = led(a_controller(cluster, Told(queued=3.0), SCALES, clock=clock))
        turned(controller)
        clock.advance(60)
        assert woken(controller) is None
        assert cluster.replicas() == 0


class TestShards:
    def test_every_service_has_one_controller_and_all_have_some(self) -> None:
        counts = [0] * 4
        for number in range(4000):
            counts[shard_of(f"ns/{number}", 4)] += 1
        assert sum(counts) == 4000
        assert min(counts) > 850
        assert shard_of("prod/llama-8b", 7) == shard_of("prod/llama-8b", 7)

    def test_what_others_hold_is_foreign(self) -> None:
        variants = tuple(
            a_served(name=f"v{number}", model=f"m{number}", pods=(f"p{number}",), nodes=("n1",), gpus=2)
            for number in range(4)
        )
        seen = Observation(at_s=START, variants=variants, pools=two_nodes())
        parts = [share_of(seen, Sharding(shards=2, shard=shard)) for shard in (0, 1)]
        assert sorted(each.name for part in parts for each in part.variants) == ["v0", "v1", "v2", "v3"]
        for part in parts:
            assert part.pools[0].nodes[0].foreign_gpus == 2 * (4 - len(part.variants))

    def test_one_controller_of_all_sees_everything_as_it_is(self) -> None:
        seen = Observation(at_s=START, variants=(a_served(),))
        assert share_of(seen, Sharding()) is seen
        assert is_ours(a_served(), Sharding())

    def test_variants_of_other_shards_are_left_alone(self) -> None:
        cluster = direct()
        mine = shard_of("prod/llama-8b", 2)
        text = f"{SCALES}\nlease: {{enabled: false}}\nsharding: {{shards: 2, shard: "
        led(a_controller(cluster, Told(kv=0.79), f"{text}{1 - mine}}}")).cycle(("timer",))
        assert cluster.replicas() == 2
        led(a_controller(cluster, Told(kv=0.79), f"{text}{mine}}}")).cycle(("timer",))
        assert cluster.replicas() == 3


def events_of(cluster: Served) -> list[dict[str, Any]]:
    return [thing for key, thing in cluster._objects.items() if key[1] == "events"]


class TestEvents:
    def test_the_same_reason_again_counts_on_in_place_of_another_event(self) -> None:
        cluster, source = direct(), Told(kv=0.78)
        controller = led(a_controller(cluster, source, SCALES))
        for _ in range(3):
            turned(controller)
            cluster.settle()
        (event,) = [each for each in events_of(cluster) if each["reason"] == "ScaledUp"]
        assert event["count"] == 3
        assert event["message"].startswith("4 → 5")

    def test_nothing_is_told_while_nothing_changes(self) -> None:
        cluster = direct()
        controller = led(a_controller(cluster, Told(kv=0.5), SCALES))
        for _ in range(4):
            turned(controller)
        assert events_of(cluster) == []

    def test_a_denial_is_one_finding_that_names_the_rule_and_stops_nothing(self) -> None:
        cluster = direct(denied={("create", "events")})
        record = turned(led(a_controller(cluster, Told(kv=0.78), SCALES)))
        assert cluster.replicas() == 3
        (finding,) = [each for each in record.findings if each.subject == "events"]
        assert "create" in finding.remedy


class TestNews:
    def test_status_and_bookkeeping_are_no_news_and_a_spec_is(self) -> None:
        known: dict[tuple[str, str, str], str] = {}
        thing = a_deployment()
        assert not is_news(thing, known, DEPLOYMENTS)
        status = {
            **thing,
            "status": {"readyReplicas": 7},
            "metadata": {**thing["metadata"], "resourceVersion": "9"},
        }
        assert not is_news(status, known, DEPLOYMENTS)
        assert is_news(a_deployment(replicas=5), known, DEPLOYMENTS)

    def test_of_a_node_only_a_cordon_or_a_taint_is_news(self) -> None:
        known: dict[tuple[str, str, str], str] = {}
        node = {"metadata": {"name": "n1", "annotations": {"beat": "1"}}, "spec": {"podCIDR": "a"}}
        is_news(node, known, NODES)
        assert not is_news({**node, "metadata": {"name": "n1", "annotations": {"beat": "2"}}}, known, NODES)
        assert is_news({**node, "spec": {"unschedulable": True}}, known, NODES)

    def test_the_first_listing_rings_nobody_and_every_change_after_it_does(self) -> None:
        rung: list[str] = []
        watches, known = Watches((), rung.append), {}
        watches._news(Change(ChangeKind.ALL, (a_deployment(),)), DEPLOYMENTS, known, "")
        assert rung == []
        watches._news(Change(ChangeKind.ADDED, (a_deployment("other"),)), DEPLOYMENTS, known, "")
        watches._news(Change(ChangeKind.MODIFIED, (a_deployment(replicas=9),)), DEPLOYMENTS, known, "")
        watches._news(Change(ChangeKind.DELETED, (a_deployment(),)), DEPLOYMENTS, known, "")
        assert rung == [
            "Deployment prod/other changed",
            "Deployment prod/llama changed",
            "Deployment prod/llama deleted",
        ]

    def test_rings_are_answered_together(self) -> None:
        bell = Bell()
        assert not bell.wait(0.0)
        for reason in ("a", "b", "a"):
            bell.ring(reason)
        assert bell.wait(0.0)
        assert bell.answered() == ("a", "b")
        assert bell.answered() == ()


@contextmanager
def served(controller: Controller, **settings: Any) -> Iterator[str]:
    server: StatusServer = serve(ServerSettings(port=0, **settings), controller, SystemClock())
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.stop()


def get(url: str, token: str | None = None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.read().decode()


class TestServer:
    def test_probes_figures_and_status_answer(self) -> None:
        controller = led(a_controller(Served(), Told(kv=0.78)))
        with served(controller) as url:
            assert get(f"{url}/healthz") == (200, "alive\n")
            assert get(f"{url}/readyz")[0] == 503
            turned(controller)
            assert get(f"{url}/readyz") == (200, "leads\n")
            assert "fleetplan_controller_leader 1" in get(f"{url}/metrics")[1]
            assert "wva_desired_replicas{" in get(f"{url}/metrics")[1]
            status = ControllerStatus.model_validate_json(get(f"{url}/status")[1])
            assert (status.decisions[0].desired, status.leader) == (3, True)
            assert get(f"{url}/etc/passwd")[0] == 404
            assert asked_status(url, {}, SystemClock()).decisions == status.decisions

    def test_an_election_that_is_stuck_is_not_healthy(self) -> None:
        clock = FakeClock(START)
        controller = led(a_controller(Served(), clock=clock))
        clock.advance(46)
        assert controller.healthy() == (False, "the election is stuck")

    def test_a_follower_is_ready_and_exports_no_desired_replicas(self) -> None:
        cluster, clock = Served(), FakeClock(START)
        led(a_controller(cluster, clock=clock, who="one"))
        two = a_controller(cluster, clock=clock, who="two")
        two.elect()
        assert two.ready() == (True, "one leads")
        assert b"wva_desired_replicas{" not in two.metrics(None)

    def test_a_token_is_asked_for_and_probes_need_none(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("0123456789abcdef\n")
        controller = led(a_controller(Served()))
        with served(controller, token_file=token) as url:
            assert get(f"{url}/status")[0] == 401
            assert get(f"{url}/status", "0123456789abcdee")[0] == 401
            assert get(f"{url}/status", "0123456789abcdef")[0] == 200
            assert get(f"{url}/healthz")[0] == 200
            with pytest.raises(PermanentError):
                asked_status(url, {}, SystemClock())
            assert asked_status(url, {"token_file": token}, SystemClock()).controller == "one"
        assert b'requests_refused_total{reason="no token, or another one"} 3' in controller.metrics(None)

    @pytest.mark.parametrize(
        ("settings", "wrong"),
        [
            ({"host": "0.0.0.0", "token_file": "token"}, "without TLS"),  # noqa: S104
            ({"token_file": "absent"}, "cannot be read"),
            ({"token_file": "short"}, "too short"),
            ({"cert_file": "token"}, "certificate or key"),
            ({"cert_file": "absent"}, "certificate or key"),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_would_be_unsafe_or_cannot_work_is_refused(
        self, settings: dict[str, Any], wrong: str, tmp_path: Path
    ) -> None:
        (tmp_path / "token").write_text("0123456789abcdef")
        (tmp_path / "short").write_text("0123")
        paths = {key: value if key == "host" else tmp_path / value for key, value in settings.items()}
        with pytest.raises(ConfigurationError, match=wrong):
            serve(ServerSettings(port=0, **paths), a_controller(Served()), SystemClock())

    def test_over_tls_it_is_trusted_by_its_ca(self, tmp_path: Path) -> None:
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("openssl is not installed")
        key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
        name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        how = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        made = [openssl, "req", "-x509", *how, "-keyout", str(key), "-out", str(cert), *name]
        subprocess.run(made, check=True, capture_output=True)
        controller = led(a_controller(Served()))
        with served(controller, cert_file=cert, key_file=key) as url:
            secure = url.replace("http://", "https://")
            assert asked_status(secure, {"ca_file": cert}, SystemClock()).controller == "one"
            with pytest.raises(TemporaryError):
                asked_status(secure, {}, SystemClock(), timeout_s=5.0)
            with pytest.raises(TemporaryError):
                asked_status(url, {}, SystemClock(), timeout_s=5.0)

    def test_a_port_that_is_taken_asks_to_try_again(self) -> None:
        controller = a_controller(Served())
        with served(controller) as url, pytest.raises(TemporaryError, match="cannot listen"):
            serve(ServerSettings(port=int(url.rpartition(":")[2])), controller, SystemClock())

    def test_nobody_there_asks_to_try_again(self) -> None:
        with pytest.raises(TemporaryError, match="is a controller running there"):
            asked_status("http://127.0.0.1:1", {}, SystemClock(), timeout_s=2.0)

    def test_records_tell_how_a_controller_stood(self, tmp_path: Path) -> None:
        controller = led(a_controller(Served(), Told(kv=0.78), records=tmp_path))
        turned(controller)
        found = recorded_status(tmp_path, controller.parts.clock)
        assert [(each.before, each.desired) for each in found.decisions] == [(2, 3)]
        with pytest.raises(ConfigurationError, match="no controller has written"):
            recorded_status(tmp_path / "other", controller.parts.clock)


class TestMeters:
    def test_labels_of_others_cannot_break_the_page(self) -> None:
        meters = Meters()
        meters.count("decisions_total", reason='a"b\\c\nd 1')
        page = meters.exposition().decode()
        assert page.splitlines()[-1] == 'fleetplan_controller_decisions_total{reason="a\\"b\\\\c\\nd 1"} 1'

    def test_a_gauge_forgets_values_of_a_label_that_are_gone(self) -> None:
        meters = Meters()
        meters.set_all("variants", "reason", {"a": 1, "b": 2})
        meters.set_all("variants", "reason", {"b": 3})
        assert (meters.of("variants", reason="a"), meters.of("variants", reason="b")) == (0, 3)


class TestRunning:
    def test_a_controller_runs_until_it_is_stopped_and_leaves_nothing_behind(self) -> None:
        cluster = direct()
        text = f"{SCALES}\nserver: {{port: 0}}\ncycle_s: 1\nlease: {{lease_s: 3, renew_s: 2, retry_s: 0.2}}"
        records: list[int] = []
        controller = a_controller(
            cluster, Told(kv=0.78), text, clock=SystemClock(), told=lambda each: records.append(each.number)
        )  # type: ignore[arg-type]
        thread = threading.Thread(target=controller.run)
        thread.start()
        for _ in range(200):
            if records:
                break
            thread.join(0.1)
        controller.stop()
        thread.join(20)
        assert not thread.is_alive()
        assert records
        assert cluster.replicas() == 3
        lease = cluster._objects["coordination.k8s.io", "leases", "default", "fleetplan"]
        assert lease["spec"]["holderIdentity"] == ""
        json.dumps(lease)
