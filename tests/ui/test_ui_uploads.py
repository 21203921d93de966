"""Uploads: what is good opens, what is bad is named, and no upload reaches a file that it did not bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.observation import Observation
from planner import load_scenario
from planner.errors import ConfigurationError
from planner.ui.uploads import LIMIT_BYTES, Upload, observation_of, scenario_of

GOOD = Path("data/scenarios/01-two-variants.yaml").read_bytes()
TABLE = Path("data/profiles/control-loop.csv").read_bytes()


def refusal(uploads: list[Upload], folder: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        scenario_of(uploads, folder)
    return str(caught.value)


def test_a_scenario_opens_as_from_a_file(tmp_path: Path) -> None:
    found = scenario_of([Upload("s.yaml", GOOD)], tmp_path)
    assert found.but(name="x") == load_scenario("data/scenarios/01-two-variants.yaml").but(name="x")
    assert list(tmp_path.iterdir()) == []


def test_a_table_comes_with_its_scenario_and_is_found_again(tmp_path: Path) -> None:
    text = GOOD + b"\nprofiles: [own.csv]\n"
    found = scenario_of([Upload("own.csv", TABLE), Upload("s.yaml", text)], tmp_path)
    (profile,) = found.profiles
    assert Path(profile).read_bytes() == TABLE
    assert Path(profile).resolve().is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../../../etc/passwd", "data/profiles/control-loop.csv", "/etc/passwx"]
)
@pytest.mark.parametrize("with_table", [True, False])
def test_a_scenario_cannot_name_files_of_the_server(tmp_path: Path, name: str, with_table: bool) -> None:
    uploads = [Upload("s.yaml", GOOD + f"\nprofiles: [{name!r}]\n".encode())]
    said = refusal(uploads + ([Upload("own.csv", TABLE)] if with_table else []), tmp_path)
    assert "comes with the scenario" in said
    assert "did you mean" not in said


@pytest.mark.parametrize("name", ["/etc/hostname", "../../../../../../etc/hostname", "/etc/no-such-file"])
@pytest.mark.parametrize("with_table", [True, False])
def test_a_scenario_cannot_include_files_of_the_server(tmp_path: Path, name: str, with_table: bool) -> None:
    uploads = [Upload("s.yaml", GOOD + f"\ninclude: [{name}]\n".encode())]
    said = refusal(uploads + ([Upload("own.csv", TABLE)] if with_table else []), tmp_path)
    assert "no such file" not in said
    assert "absolute" not in said
    assert "allowed: no includes" in said or "allowed: a file in it" in said


@pytest.mark.parametrize(
    ("uploads", "words"),
    [
        ([], "0 scenario files"),
        ([Upload("a.yaml", GOOD), Upload("b.yaml", GOOD)], "2 scenario files"),
        ([Upload("s.exe", b"MZ")], ".exe"),
        ([Upload("s.pkl", b"\x80\x04")], ".pkl"),
        ([Upload("../s.yaml", GOOD)], "../s.yaml"),
        ([Upload("<img src=x onerror=alert(1)>.yaml", GOOD)], "a file called"),
        ([Upload("s.yaml", b"\xff\xfe\x00")], "0xff"),
        ([Upload("s.yaml", b"")], "empty"),
        ([Upload("s.yaml", b"services: [")], "no YAML"),
        ([Upload("s.yaml", b"!!python/object/apply:os.system ['true']")], "tag"),
        ([Upload("s.yaml", b"a: &a [x, x]\nb: [*a, *a]\nservices: {}")], "services"),
        ([Upload("s.yaml", b"#" * (LIMIT_BYTES + 1))], "at most 20 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_bad_is_named(tmp_path: Path, uploads: list[Upload], words: str) -> None:
    assert words in refusal(uploads, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_observation_is_told_from_a_scenario_by_its_first_words() -> None:
    seen = Observation(at_s=2.0)
    text = seen.canonical_json().encode()
    assert observation_of([Upload("seen.json", text)]) == seen
    earlier = Observation(at_s=1.0).canonical_json().encode()
    assert observation_of([Upload("seen.jsonl", earlier + b"\n" + text + b"\n")]) == seen
    assert observation_of([Upload("s.yaml", GOOD)]) is None
    assert observation_of([Upload("seen.json", text), Upload("s.yaml", GOOD)]) is None


@pytest.mark.parametrize(
    "text", [b'{"at_s":', b'{"at_s":-1}', b'{"at_s":1,"engines":[{"kv_usage":7}]}', b'{"at_s":NaN}']
)
def test_what_begins_as_an_observation_and_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(ConfigurationError, match="no observation"):
        observation_of([Upload("seen.json", text)])
