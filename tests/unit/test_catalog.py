"""The catalog answers by id and by other names, and reports everything that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.catalog import Catalog, catalog_root, load_catalog
from planner.errors import CatalogError

GOOD = """
accelerators:
  Mine:
    vendor: Acme
    memory_bytes: {value: 10 GiB, source: X1}
    aliases: [acme-mine]
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def user_file(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(*paths: Path) -> list[str]:
    with pytest.raises(CatalogError) as caught:
        load_catalog(extra=paths)
    return [str(finding) for finding in caught.value.findings]


def test_the_shipped_catalog_is_broad(catalog: Catalog) -> None:
    assert len(catalog.accelerators) >= 18
    assert {entry.vendor for entry in catalog.accelerators.values()} == {"NVIDIA", "AMD", "Intel", "Google"}
    assert len(catalog.llms) >= 15
    assert {entry.attention.kind for entry in catalog.llms.values()} == {"gqa", "mla"}
    assert any(entry.sliding_layers for entry in catalog.llms.values())


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("H100", "H100"),
        ("h100", "H100"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("nvidia-h100-80gb", "H100"),
        ("h200_sxm", "H200"),
        ("NVIDIA-A100-SXM4-40GB", "A100-40GB"),
        ("A100", "A100-80GB"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("tpu-v6e-slice", "TPU-v6e"),
    ],
)
def test_an_accelerator_is_found_by_what_people_and_nodes_call_it(
    catalog: Catalog, name: str, id_: str
) -> None:
    assert catalog.accelerator(name).id == id_


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("qwen/qwen3-32b", "Qwen3-32B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("DeepSeek-R1", "DeepSeek-R1"),
    ],
)
def test_an_llm_is_found_by_its_repository(catalog: Catalog, name: str, id_: str) -> None:
    assert catalog.llm(name).id == id_


def test_an_unknown_name_gets_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="did you mean 'H100'") as caught:
        catalog.accelerator("H10O")
    assert caught.value.exit_code == 2
    with pytest.raises(CatalogError, match="did you mean 'Qwen3-32B'"):
        catalog.llm("Qwen3-32-B")
    with pytest.raises(CatalogError, match="did you mean 'aiconfigurator'"):
        catalog.profile("aiconfigurater")


def test_a_name_is_looked_for_without_a_complaint(catalog: Catalog) -> None:
    found = catalog.find_accelerator("nvidia-h100-80gb"), catalog.find_llm("qwen3-32b")
    assert [each.id for each in found if each is not None] == ["H100", "Qwen3-32B"]
    assert catalog.find_accelerator("H10O") is None
    assert catalog.find_llm("Qwen3-32-B") is None


def test_the_paper_s_powers_are_there(catalog: Catalog) -> None:
    assert catalog.accelerator("A100").tdp_w == 400
    assert catalog.accelerator("H100").tdp_w == 700


def test_what_no_source_states_is_absent(catalog: Catalog) -> None:
    assert catalog.accelerator("A10G").tdp_w is None
    assert catalog.accelerator("A100-40GB").memory_bandwidth is None
    assert catalog.accelerator("Gaudi2").idle_w is None


def test_every_measured_point_names_an_entry(catalog: Catalog) -> None:
    points = [point for table in catalog.profiles.values() for point in table]
    assert {point.llm for point in points} <= set(catalog.llms)
    assert {point.accelerator for point in points} <= set(catalog.accelerators)
    assert len({point.accelerator for point in points}) >= 3
    assert len(points) <= 700


def test_mappings_are_frozen(catalog: Catalog) -> None:
    with pytest.raises(TypeError):
        catalog.llms["mine"] = catalog.llm("Qwen3-8B")  # type: ignore[index]


def test_a_user_s_entry_joins_and_replaces(tmp_path: Path) -> None:
    mine = user_file(tmp_path, GOOD + "  H100:\n    vendor: NVIDIA\n    memory_bytes: 94 GiB\n")
    catalog = load_catalog(extra=[mine])
    assert catalog.accelerator("acme-mine").memory_bytes == 10 * 2**30
    assert catalog.accelerator("H100").memory_bytes == 94 * 2**30
    assert catalog.sources["accelerators/Mine"] == {"memory_bytes": "X1"}
    assert catalog.sources["accelerators/H100"] == {}


def test_a_folder_of_the_user_is_read_like_ours(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    entry = "Mine:\n  vendor: Acme\n  memory_bytes: 10 GiB\n"
    (tmp_path / "catalog" / "accelerators.yaml").write_text(entry, encoding="utf-8")
    assert set(load_catalog(tmp_path).accelerators) == {"Mine"}
    assert "Mine" in load_catalog(extra=[tmp_path]).accelerators


def test_a_root_without_a_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no folder catalog/"):
        catalog_root(tmp_path)


def test_every_problem_of_every_file_is_listed_with_its_line(tmp_path: Path) -> None:
    first = user_file(
        tmp_path,
        "accelerators:\n  A:\n    vendor: Acme\n    memory_bytes: 10 bananas\n    tdp: 300 W\n  B:\n    vendor: Acme\n",
        "first.yaml",
    )
    second = user_file(tmp_path, "lms:\n  C: {}\n", "second.yaml")
    found = problems(first, second)
    assert f"{first}:4: accelerators.A.memory_bytes: found '10 bananas'" in next(
        line for line in found if "bananas" in line
    )
    assert any(
        line.startswith(f"{first}:5: accelerators.A.tdp: found the unknown key 'tdp'") for line in found
    )
    assert any("did you mean 'tdp_w'" in line for line in found)
    assert any(line.startswith(f"{first}:6: accelerators.B.memory_bytes: found nothing") for line in found)
    assert any(
        line.startswith(f"{second}:1: lms: found the unknown key 'lms'") and "'llms'" in line
        for line in found
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file"),
        ("accelerators: [1, 2]\n", "found list"),
        ("- a\n", "no mapping"),
        ("accelerators:\n  A: 3\n", "accelerators.A: found int '3'"),
        ("accelerators:\n  A: {vendor: x, vendor: y, memory_bytes: 1}\n", "the key 'vendor' again"),
        ("accelerators:\n  A: &a {vendor: x, memory_bytes: 1}\n  B: *a\n", "a reference to an anchor"),
        ("accelerators: {A: {vendor: x, memory_bytes: .nan}}\n", "accelerators.A.memory_bytes: found nan"),
        ("accelerators: {A: {vendor: x, memory_bytes: -1}}\n", "found -1"),
        ("accelerators: {A: {vendor: x, memory_bytes: 1, tdp_w: .inf}}\n", "found inf"),
        ("accelerators: {A: \n  b: ]\n", "allowed: YAML"),
        ("accelerators: {A: !!python/object:os.system {}}\n", "could not determine a constructor"),
        ("llms: {A: {parameters: 1, layers: 1, attention: {kind: gqa, kv_head: 1, head_dim: 1}}}\n", "unknown key 'kv_head'"),
        ("llms: {A: {parameters: 1, layers: 1, attention: {kind: odd}}}\n", "llms.A.attention"),
        ("accelerators: {A: {vendor: x, memory_bytes: 1, aliases: [h100]}}\n", "the alias 'h100', which H100 has too"),
        ("1: {A: {}}\n", "the unknown key 1"),
    ],
)  # fmt: skip
def test_hostile_files_are_named(tmp_path: Path, text: str, said: str) -> None:
    assert said in "\n".join(problems(user_file(tmp_path, text)))


def test_a_missing_file_and_one_that_is_no_text_are_named_together(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"accelerators:\n  \xff\xfe: 1\n")
    found = problems(tmp_path / "absent.yaml", binary)
    assert any("absent.yaml" in line and "No such file" in line for line in found)
    assert any(line.startswith(f"{binary}:2: found byte 0xff") for line in found)
