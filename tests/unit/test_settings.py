"""Settings come from the environment; wrong ones are named all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cli.commands.solving import MOST_THREADS
from planner.errors import ConfigurationError
from planner.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _a_bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FLEETPLAN_{name.upper()}", raising=False)


def test_defaults_hold_without_an_environment() -> None:
    settings = load_settings()
    assert (settings.threads, settings.time_limit_s, settings.gap) == (None, 60.0, 1e-4)
    assert (settings.catalog_dir, settings.log_level) == (None, "WARNING")


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("FLEETPLAN_THREADS", "2", "threads", 2),
        ("FLEETPLAN_TIME_LIMIT_S", "2 min", "time_limit_s", 120.0),
        ("FLEETPLAN_GAP", "0.1 %", "gap", 0.001),
        ("FLEETPLAN_CATALOG_DIR", "/srv/catalog", "catalog_dir", Path("/srv/catalog")),
        ("FLEETPLAN_LOG_LEVEL", "DEBUG", "log_level", "DEBUG"),
    ],
)
def test_a_variable_sets_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, field: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    assert getattr(load_settings(), field) == value


def test_every_wrong_variable_is_in_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, text in [("THREADS", "0"), ("GAP", "nan"), ("TIME_LIMIT_S", "soon"), ("LOG_LEVEL", "LOUD")]:
        monkeypatch.setenv(f"FLEETPLAN_{variable}", text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert {finding.path: finding.found for finding in caught.value.findings} == {
        "FLEETPLAN_THREADS": "'0'",
        "FLEETPLAN_GAP": "'nan'",
        "FLEETPLAN_TIME_LIMIT_S": "'soon'",
        "FLEETPLAN_LOG_LEVEL": "'LOUD'",
    }


@pytest.mark.parametrize("threads", [MOST_THREADS, MOST_THREADS + 1])
def test_settings_and_options_allow_as_many_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setenv("FLEETPLAN_THREADS", str(threads))
    if threads <= MOST_THREADS:
        assert load_settings().threads == threads
    else:
        with pytest.raises(ConfigurationError, match="FLEETPLAN_THREADS"):
            load_settings()


def test_every_field_tells_its_default_and_why() -> None:
    described = {name: field.description or "" for name, field in Settings.model_fields.items()}
    assert [name for name, text in described.items() if "Default " not in text] == []
