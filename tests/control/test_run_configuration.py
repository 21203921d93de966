"""Settings in layers: which goes before which, where each value is from, and edits that are refused as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.controller import ControllerSettings
from models.observation import VariantObservation
from planner.clock import FakeClock
from planner.control.cluster import Api, ClusterFault, Limits, MemoryCluster, Trouble
from planner.control.running.configuring import configured
from planner.control.running.layering import environment_layer, file_layer, flags_layer
from planner.control.running.live import LIVE, LiveConfiguration
from planner.errors import ConfigurationError
from planner.scenario.tree import Complaints
from tests.control.controller_builders import START, Served, Told, a_controller, led, settings_layer

BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "\n".join(
    f"{name}: &{name} [{','.join([f'*{below}'] * 10)}]"
    for below, name in zip("abcdefg", "bcdefgh", strict=True)
)
HOSTILE = [
    BOMB,
    "[" * 20_000,
    "{a: " * 200 + "1" + "}" * 200,
    "!!python/object/apply:os.system [id]",
    "cycle_s: 15\n" + "#" * 2**20,
    "- a list",
    "just a text",
    "cycle_s: 1\ncycle_s: 2",
    "\x00",
    "cycle_s: *nobody",
    "rules: {tau_kv: .nan}",
    "rules: {tau_kv: -.inf}",
    "rules: {tau_kv: 1e400}",
    "cycle_s: 99999999999999999999",
    "overrides: {}",
    "overrides: [{modle: llama}]",
    "rules: {tau_kv: 0.05}",
    "freezes: [{begin: '25:00'}]",
    "freezes: [{zone: Mars/Olympus}]",
    "maintenance: [{nodes: ['$(id)'], begin: 2026-01-01T00:00:00Z}]",
    "act: true",
    "server: {host: 0.0.0.0}",
    "clusters: [{kubeconfig: /etc/shadow}]",
    "live: {name: other}",
]  # fmt: skip


def layer_of_flags(*pairs: str) -> Any:
    return flags_layer(pairs, Complaints())


def layer_of_variables(**variables: str) -> Any:
    return environment_layer(
        Complaints(), {f"FLEETPLAN_CONTROLLER_{name}": value for name, value in variables.items()}
    )


class TestLayers:
    def test_flags_go_before_variables_before_files_before_defaults(self) -> None:
        layers = [
            settings_layer("{cycle_s: 20, rules: {tau_kv: 0.6, gamma_kv: 0.2, policy: wva}}"),
            layer_of_variables(RULES__TAU_KV="0.7", RULES__GAMMA_KV="30 %"),
            layer_of_flags("rules.tau_kv=0.75"),
        ]
        found = configured(layers)
        rules = found.settings.rules
        assert (rules.tau_kv, rules.gamma_kv, rules.policy, found.settings.cycle_s) == (
            0.75,
            0.3,
            "wva",
            20.0,
        )
        origins = {each.path: each.origin for each in found.values()}
        assert origins["rules.tau_kv"] == "--set"
        assert origins["rules.gamma_kv"] == "FLEETPLAN_CONTROLLER_RULES__GAMMA_KV"
        assert origins["rules.policy"].startswith("settings.yaml:")
        assert origins["rules.tau_queue"] == "default"

    def test_a_list_replaces_the_one_below_it(self) -> None:
        found = configured([settings_layer("namespaces: [a, b]"), layer_of_flags("namespaces=[c]")])
        assert found.settings.namespaces == ("c",)

    def test_everything_that_is_wrong_is_said_at_once_with_its_place(self, tmp_path: Path) -> None:
        file = tmp_path / "c.yaml"
        file.write_text("cycle_s: 0.1\nrules:\n  tau_kvv: 0.7\n")
        complaints = Complaints()
        layers = [
            file_layer(file, complaints),
            environment_layer(complaints, {"FLEETPLAN_CONTROLLER_LEASE__RENEW_S": "soon"}),
        ]
        layers.append(flags_layer(["nothing"], complaints))
        with pytest.raises(ConfigurationError) as refused:
            configured([each for each in layers if each is not None], complaints)
        said = str(refused.value)
        assert f"{file}:1: cycle_s" in said
        assert f"{file}:3: rules.tau_kvv" in said
        assert "did you mean 'tau_kv'?" in said
        assert "FLEETPLAN_CONTROLLER_LEASE__RENEW_S: lease.renew_s" in said
        assert "--set: found 'nothing'" in said

    def test_variables_of_a_service_of_kubernetes_are_none_of_ours(self) -> None:
        names = (
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_METRICS",
            "PORT",
            "PORT_9470_TCP",
            "PORT_9470_TCP_ADDR",
        )
        assert layer_of_variables(**dict.fromkeys(names, "tcp://10.0.0.1:9470")).entry.fields == {}

    def test_secrets_are_not_shown(self) -> None:
        text = "sources: [{name: prometheus, options: {url: 'https://me:hunter2@x', bearer_token: hunter3, token_file: t}}]"
        shown = str([each.value for each in configured([settings_layer(text)]).values()])
        assert "hunter" not in shown
        assert "'token_file': 't'" in shown

    @pytest.mark.parametrize("text", HOSTILE[:16])
    def test_hostile_texts_are_refused_and_nothing_breaks(self, text: str, tmp_path: Path) -> None:
        file = tmp_path / "c.yaml"
        file.write_text(text)
        complaints = Complaints()
        layer = file_layer(file, complaints)
        with pytest.raises(ConfigurationError):
            configured([] if layer is None else [layer], complaints)


class TestOverrides:
    VARIANT = VariantObservation.model_validate(
        {
            "name": "v", "namespace": "prod", "model": "llama", "role": "decode", "accelerator": "H100",
            "target": {"kind": "Deployment", "name": "v"},
        }
    )  # fmt: skip

    @pytest.mark.parametrize(
        ("overrides", "tau"),
        [
            ([], 0.8),
            ([{"model": "llama", "tau_kv": 0.5}], 0.5),
            ([{"model": "other", "tau_kv": 0.5}], 0.8),
            ([{"role": "prefill", "tau_kv": 0.5}], 0.8),
            ([{"model": "llama", "role": "decode", "tau_kv": 0.5}, {"model": "llama", "tau_kv": 0.6}], 0.5),
            ([{"model": "llama", "tau_kv": 0.5}, {"namespace": "prod", "tau_kv": 0.6}], 0.6),
            ([{"accelerator": "H100", "tau_kv": 0.4}], 0.4),
        ],
        ids=str,
    )
    def test_the_more_exact_goes_before_and_of_equals_the_later(
        self, overrides: list[Any], tau: float
    ) -> None:
        assert (
            ControllerSettings.model_validate({"overrides": overrides}).rules_of(self.VARIANT).tau_kv == tau
        )

    def test_one_field_changes_and_the_others_stay(self) -> None:
        settings = ControllerSettings.model_validate(
            {"rules": {"gamma_kv": 0.2}, "overrides": [{"model": "llama", "tau_kv": 0.5}]}
        )
        rules = settings.rules_of(self.VARIANT)
        assert (rules.tau_kv, rules.gamma_kv) == (0.5, 0.2)

    def test_one_that_does_not_fit_the_rules_is_refused_with_its_place(self) -> None:
        with pytest.raises(ValueError, match=r"overrides\[0\]: gamma_kv 0.1 must be less than tau_kv 0.05"):
            ControllerSettings.model_validate({"overrides": [{"tau_kv": 0.05}]})


def a_config_map(text: str | None, **more: Any) -> dict[str, Any]:
    data = {} if text is None else {"controller.yaml": text}
    return {
        "kind": "ConfigMap",
        "metadata": {"name": "fleetplan-controller", "namespace": "default"},
        "data": data,
        **more,
    }


def live_of(cluster: MemoryCluster, text: str = "") -> LiveConfiguration:
    api = Api(cluster, FakeClock(START), None, Limits(tries=1))
    return LiveConfiguration([settings_layer(f"live: {{}}\n{text}")], api)


def edit(cluster: MemoryCluster, text: str | None) -> None:
    cluster._keep(("", "configmaps", "default", "fleetplan-controller"), a_config_map(text))


class TestLiveConfiguration:
    def test_a_good_edit_counts_at_once_and_names_its_origin(self) -> None:
        cluster = MemoryCluster([a_config_map("rules: {tau_kv: 0.7}")])
        live = live_of(cluster)
        assert live.refresh() == ()
        assert live.settings.rules.tau_kv == 0.7
        origin = {each.path: each.origin for each in live.configuration.values()}["rules.tau_kv"]
        assert origin == "ConfigMap default/fleetplan-controller:1"
        edit(cluster, "rules: {tau_kv: 0.6}")
        live.refresh()
        assert (live.settings.rules.tau_kv, live.changes) == (0.6, 2)

    def test_what_was_fixed_at_the_start_stays_fixed(self) -> None:
        live = live_of(MemoryCluster([a_config_map("{cycle_s: 99, rules: {tau_kv: 0.7}}")]), "cycle_s: 20")
        live.refresh()
        assert (live.settings.cycle_s, live.settings.rules.tau_kv) == (20.0, 0.7)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_bad_edit_keeps_the_last_good_one_and_is_counted_once(self, text: str) -> None:
        cluster = MemoryCluster([a_config_map("rules: {tau_kv: 0.7}")])
        live = live_of(cluster)
        live.refresh()
        edit(cluster, text)
        for _ in range(3):
            (finding,) = live.refresh()
            assert finding.problem.startswith("refused: ")
        assert (live.settings.rules.tau_kv, live.refused) == (0.7, 1)
        edit(cluster, "rules: {tau_kv: 0.6}")
        assert live.refresh() == ()
        assert live.settings.rules.tau_kv == 0.6

    def test_one_that_is_deleted_leaves_its_values(self) -> None:
        cluster = MemoryCluster([a_config_map("paused: true")])
        live = live_of(cluster)
        live.refresh()
        cluster._objects.clear()
        (finding,) = live.refresh()
        assert "gone" in finding.problem
        assert live.settings.paused

    def test_an_empty_one_sets_nothing(self) -> None:
        cluster = MemoryCluster([a_config_map("paused: true")])
        live = live_of(cluster)
        live.refresh()
        edit(cluster, "")
        assert live.refresh() == ()
        assert not live.settings.paused

    def test_one_without_its_entry_is_a_bad_edit(self) -> None:
        cluster = MemoryCluster([a_config_map("paused: true")])
        live = live_of(cluster)
        live.refresh()
        edit(cluster, None)
        (finding,) = live.refresh()
        assert "has no entry controller.yaml" in finding.problem
        assert live.settings.paused

    def test_none_yet_is_told_and_nothing_else(self) -> None:
        live = live_of(MemoryCluster())
        (finding,) = live.refresh()
        assert "there is none yet" in finding.problem

    @pytest.mark.parametrize("trouble", [Trouble.UNREACHABLE, Trouble.DENIED])
    def test_one_that_cannot_be_read_leaves_its_values(self, trouble: Trouble) -> None:
        cluster = MemoryCluster([a_config_map("paused: true")])
        live = live_of(cluster)
        live.refresh()

        def away(_: Any) -> None:
            raise ClusterFault(trouble, "the test says so")

        cluster.before = away
        (finding,) = live.refresh()
        assert "its last values stay" in finding.problem
        assert live.settings.paused

    def test_only_settings_that_may_be_live_are_known_by_that_name(self) -> None:
        assert ControllerSettings.model_fields.keys() >= LIVE

    def test_an_edit_touches_no_variant(self) -> None:
        cluster = Served(a_config_map("rules: {tau_kv: 0.79}"))
        controller = led(a_controller(cluster, Told(kv=0.5), "{live: {}, lease: {enabled: false}}"))
        controller.cycle(("start",))
        edit(cluster, "rules: {tau_kv: 0.78}")
        before = len(cluster.writes)
        controller.cycle(("timer",))
        assert len(cluster.writes) == before
        assert controller.loop.settings.rules.tau_kv == 0.78
        edit(cluster, "paused: yes please")
        controller.cycle(("timer",))
        assert b"configuration_refused_total 1" in controller.metrics(None)
        assert any("refused" in each.problem for each in controller.standing().findings)
