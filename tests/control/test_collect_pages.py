"""Pages: real ones, odd ones, and the sources that read them from engines, files and pushes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.observation import EngineObservation, Observation, VariantObservation
from models.variant import KubernetesObject
from planner.clock import Clock, FakeClock, SystemClock
from planner.control.collectors import METRICS_SOURCES, open_source
from planner.control.collectors.endpoints import Endpoint, EndpointOptions, EndpointSource
from planner.control.collectors.exposition import PageLimits, parse
from planner.control.collectors.files import FileSource
from planner.control.collectors.files import source as files
from planner.control.collectors.pages import Origin, PageBook
from planner.control.collectors.push import PushSource
from planner.control.collectors.push import source as push
from planner.control.protocols import MetricsReading
from planner.errors import ConfigurationError, TemporaryError
from tests.page_servers import an_engine_page, page_of

TOKEN = "a-token-of-the-receiver"  # noqa: S105 - made up
ENGINE = Origin("10.0.0.1:8000", "prod", "llama-0")


@pytest.fixture
def scrapes() -> Path:
    data = os.environ.get("FLEETPLAN_TEST_DATA")
    if not data:
        pytest.skip("FLEETPLAN_TEST_DATA names no folder with real pages")
    return Path(data) / "scrapes"


def after(*texts: str, origin: Origin = ENGINE, **more: Any) -> MetricsReading:
    """The reading after pages that came 15 s apart."""
    book = PageBook(**more)
    for index, text in enumerate(texts):
        book.take(origin, text, 1e9 + 15.0 * index)
    return book.reading((), 1e9 + 15.0 * len(texts))


def only(reading: MetricsReading) -> EngineObservation:
    (engine,) = reading.engines
    return engine


def test_a_real_page_of_vllm_is_read(scrapes: Path) -> None:
    text = (scrapes / "vllm_v1_kops_qwen2.5-0.5b.prom").read_text()
    engine = only(after(text))
    assert (engine.model, engine.kv_tokens, engine.running) == ("Qwen/Qwen2.5-0.5B-Instruct", 1_626_000, 0)
    assert engine.started_s == pytest.approx(1.774e9, rel=1e-3)
    assert after(text).findings == ()


def test_a_real_page_of_sglang_is_read(scrapes: Path) -> None:
    engine = only(after((scrapes / "sglang_v0.5.10_datadog.prom").read_text()))
    assert (engine.model, engine.kv_tokens, engine.kv_usage) == ("facebook/opt-125m", 430_839, 0.25)


@pytest.mark.parametrize("name", ["epp_inference_extension.prom", "epp_llm_d_router.prom"])
def test_real_pages_of_routers_count_everything_once(scrapes: Path, name: str) -> None:
    text = (scrapes / name).read_text()
    later = text.replace('target_model_name="t10"} 2', 'target_model_name="t10"} 17')
    traffic = {(each.namespace, each.model): each for each in after(text, later).traffic}
    assert traffic["prod", "t10"].arrival_rps == pytest.approx(1.0)
    assert traffic["prod", "t10"].arrived == pytest.approx(15.0)


def test_a_real_page_of_accelerators_gives_the_pod_its_power(scrapes: Path) -> None:
    book = PageBook()
    pod = "vllm-agg-0-vllmdecodeworker-s65j5"
    book.take(Origin("dcgm:9400"), (scrapes / "dcgm_h100_x8_aicr.prom").read_text(), 1e9)
    book.take(Origin("10.0.0.1:8000", "dynamo-workload", pod), an_engine_page(), 1e9)
    assert only(book.reading((), 1e9)).power_w == pytest.approx(113.611)


def test_every_name_of_the_simulator_is_known(scrapes: Path) -> None:
    names = (scrapes / "llm-d-inference-sim_metric_names.txt").read_text().split()
    values: dict[str, float] = {}
    for name in names:
        values |= {f"{name}_sum": 10.0, f"{name}_count": 2.0} if "seconds" in name or "tokens" in name else {}
        values[name] = 0.5
    later = {name: value + (0 if "perc" in name else 10) for name, value in values.items()}
    size = '\nvllm:cache_config_info{block_size="16",num_gpu_blocks="1024"} 1\n'
    pages = (page_of(each, model_name="m") + size for each in (values, later))
    engine = only(after(*pages))
    unknown = [name for name, value in engine if value is None]
    assert unknown == ["cluster", "started_s", "power_w"]


@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({"kv_cache_usage_perc": 57.0}, "kv_usage"),
        ({"kv_cache_usage_perc": -1.0}, "kv_usage"),
        ({"kv_cache_usage_perc": float("nan")}, "kv_usage"),
        ({"num_requests_waiting": float("inf")}, "waiting"),
        ({"num_requests_running": 1e300}, "running"),
    ],
)
def test_a_value_that_cannot_be_is_unknown_and_the_others_stay(odd: dict[str, float], field: str) -> None:
    engine = only(after(an_engine_page(**odd)))
    assert getattr(engine, field) is None
    assert engine.kv_tokens == 16_000


def test_a_share_a_little_above_one_is_one() -> None:
    assert only(after(an_engine_page(kv_cache_usage_perc=1.0000002))).kv_usage == 1.0


def test_an_engine_that_left_the_page_is_gone() -> None:
    both = an_engine_page() + an_engine_page(engine="1")
    assert len(after(both).engines) == 2
    assert only(after(both, an_engine_page())).instance == "llama-0:8000"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<html><body>hello</body></html>", "no metrics page"),
        ("envoy_cluster_up 1\n", "envoy_cluster_up"),
        (an_engine_page() + "vllm:num_requests_running{engine=\n", "1 lines are no samples"),
        (an_engine_page() * 2, "repeated"),
        (an_engine_page().replace("kv_cache_usage_perc", "kv_cache_usage_ratio"), "not on the page"),
        (an_engine_page().replace("vllm:", "vllm_"), "underscore"),
        (an_engine_page().replace("kv_cache_usage_perc", "gpu_cache_usage_perc"), "V0"),
    ],
)
def test_what_is_odd_about_a_page_is_told(page: str, said: str) -> None:
    assert any(said in each.problem for each in after(page).findings)


def test_a_line_may_hold_times_exemplars_escapes_and_braces_in_quotes() -> None:
    text = (
        'a{l="x}{\\"y\\\\",m="\\n"} 1.5 1700000000000\n'
        'b_total 2 # {trace="1"} 3 4\n'
        "c 3e2 1700000000.5\n"
        "d{} +Inf\n"
    )
    samples = parse(text, lambda _: True).samples
    assert samples[0] == ("a", {"l": 'x}{"y\\', "m": "\n"}, 1.5, 1.7e9)
    assert [(each.name, each.value, each.time_s) for each in samples[1:]] == [
        ("b_total", 2.0, None), ("c", 300.0, 1700000000.5), ("d", float("inf"), None)
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["a", "a{", "a{b}", 'a{b="c} 1', "a 1_0", "a 0x1", "a one", "a 1 2 3", "{} 1", 'a{b="1",b="2"} 1', "a{b='c'} 1"])  # fmt: skip
def test_a_line_that_is_no_sample_is_counted(line: str) -> None:
    page = parse(line, lambda _: True)
    assert (page.samples, page.malformed) == ([], 1)


@pytest.mark.parametrize("line", ["a " + "1" * 30_000 + "x", 'a{x="' + '\\"' * 15_000, "a{" + '"}' * 15_000, "a{" + " " * 30_000])  # fmt: skip
def test_a_line_that_was_made_to_be_slow_is_counted_like_any_other(line: str) -> None:
    page = parse("\n".join([line] * 500), lambda _: True)
    assert (page.samples, page.malformed) == ([], 500)


def test_a_page_without_end_is_cut() -> None:
    limits = PageLimits(samples=10, names=3, labels=2, line_chars=100)
    text = "".join(f"n{index} 1\n" for index in range(20)) + 'x{a="1",b="2",c="3"} 1\n' + "y" * 200 + " 1\n"
    page = parse(text, lambda _: True, limits=limits)
    assert len(page.samples) <= 10
    assert page.beyond == 12
    assert len(page.names) == 3


# Pages of engines that are read directly.


def direct(handler: Any, *urls: str, clock: Clock | None = None, **options: Any) -> EndpointSource:
    told = EndpointOptions(endpoints=urls, **{"retries": {"tries": 1}} | options)
    return EndpointSource(told, clock or FakeClock(1e9), transport=httpx.MockTransport(handler))


def test_engines_are_read_in_parallel_and_rates_are_between_two_readings() -> None:
    clock, at = FakeClock(1e9), [0.0]

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/metrics"
        return httpx.Response(200, text=an_engine_page(at=at[0], model=request.url.host))

    reader = direct(answer, "a:8000", "http://b:8000", clock=clock)
    assert [each.request_rps for each in reader.read((), clock.unix_s()).engines] == [None, None]
    clock.advance(10.0)
    at[0] = 1.0
    reading = reader.read((), clock.unix_s())
    assert [(each.instance, each.model, each.request_rps) for each in reading.engines] == [
        ("a:8000", "a", pytest.approx(1.0, rel=0.01)), ("b:8000", "b", pytest.approx(1.0, rel=0.01))
    ]  # fmt: skip
    assert reading.complete


def test_an_engine_that_does_not_answer_ages_and_one_that_is_not_asked_for_is_gone() -> None:
    clock, down = FakeClock(1e9), []

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(500 if request.url.host in down else 200, text=an_engine_page())

    wanted = [Endpoint(url="http://a:1", pod="pod-a"), Endpoint(url="http://b:1", pod="pod-b")]
    told = EndpointOptions(retries={"tries": 1})
    reader = EndpointSource(told, clock, finder=lambda _: wanted, transport=httpx.MockTransport(answer))
    reader.read((), clock.unix_s())
    clock.advance(70.0)
    down.append("a")
    reading = reader.read((), clock.unix_s())
    assert [(each.pod, each.age_s) for each in reading.engines] == [
        ("pod-a", pytest.approx(70.0, abs=0.1)), ("pod-b", pytest.approx(0.0, abs=0.1))
    ]  # fmt: skip
    assert not reading.complete
    assert [each.subject for each in reading.findings] == ["page of pod-a"]
    del wanted[0]
    assert [each.pod for each in reader.read((), clock.unix_s()).engines] == ["pod-b"]


def test_pages_are_read_no_faster_than_allowed_and_those_that_waited_longest_come_first() -> None:
    clock = FakeClock(1e9)
    hosts = [f"h{index}:1" for index in range(30)]
    reader = direct(lambda _: httpx.Response(200, text=an_engine_page()), *hosts, clock=clock, per_second=10, within_s=1, parallel=1)  # fmt: skip
    first = reader.read((), clock.unix_s())
    assert clock.monotonic_s() <= 1.1
    assert 10 <= len(first.engines) <= 11
    assert not first.complete
    for _ in range(2):
        last = reader.read((), clock.unix_s())
    assert len(last.engines) == 30
    assert last.complete
    clock.advance(100.0)
    stale = reader.read((), clock.unix_s())
    assert "19 of 30 pages" in problems_of(stale) or "20 of 30 pages" in problems_of(stale)


def problems_of(reading: MetricsReading) -> str:
    return " ".join(each.problem for each in reading.findings)


def test_wrong_endpoints_are_refused_together() -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_source(
            "endpoints", {"endpoints": ["ftp://a", "http://u:pass@b", "c:8000", "http://[::1"]}, FakeClock()
        )
    assert len(refused.value.findings) == 3
    assert "pass" not in str(refused.value)


# Files.


def page_file(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def replayed(*paths: Path, **options: Any) -> FileSource:
    return files({"paths": paths} | options, FakeClock())


def test_pages_with_times_in_their_names_are_replayed_as_time_goes_on(tmp_path: Path) -> None:
    for index in range(3):
        page_file(tmp_path, f"llama-0.{1_700_000_000 + 15 * index}.prom", an_engine_page(at=index, num_requests_running=index))  # fmt: skip
    reader = replayed(tmp_path)
    assert reader.span_s == 30.0
    first = only(reader.read((), 500.0))
    assert (first.instance, first.running, first.request_rps, first.age_s) == ("llama-0", 0, None, 0.0)
    assert only(reader.read((), 510.0)).age_s == 10.0
    third = only(reader.read((), 530.0))
    assert (third.running, third.request_rps) == (2, pytest.approx(10 / 15))
    assert only(reader.read((), 700.0)).age_s == 170.0


def test_a_record_is_replayed_faster_and_again(tmp_path: Path) -> None:
    for index in range(3):
        page_file(tmp_path, f"{1_700_000_000 + 10 * index}.prom", an_engine_page(num_requests_running=index))
    reader = replayed(tmp_path, speed=10.0, again=True)
    assert [only(reader.read((), at_s)).running for at_s in (0.0, 1.0, 2.0, 2.5)] == [0, 1, 2, 0]


def test_a_folder_of_an_engine_is_named_after_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        page_file(tmp_path / name, "1700000000.prom", an_engine_page())
    assert [each.instance for each in replayed(tmp_path).read((), 0.0).engines] == ["a", "b"]


def test_a_recorded_observation_is_replayed_and_ages(tmp_path: Path) -> None:
    seen = [
        Observation(at_s=1.7e9 + at_s, engines=(EngineObservation(instance="a", running=at_s, age_s=1.0),))
        for at_s in (0.0, 15.0)
    ]
    path = page_file(tmp_path, "record.jsonl", "\n".join(each.canonical_json() for each in seen))
    reader = replayed(path)
    assert [(only(reader.read((), at_s)).running, only(reader.read((), at_s)).age_s) for at_s in (0.0, 14.0, 15.0, 100.0)] == [
        (0.0, 1.0), (0.0, 15.0), (15.0, 1.0), (15.0, 86.0)
    ]  # fmt: skip


def test_what_is_no_record_is_refused_with_every_fault(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    wrong = page_file(tmp_path, "wrong.json", '{"at_s": "soon"}')
    with pytest.raises(ConfigurationError) as refused:
        replayed(tmp_path / "gone", empty, wrong)
    assert len(refused.value.findings) == 3


def test_a_file_that_vanishes_while_it_is_replayed_is_told(tmp_path: Path) -> None:
    path = page_file(tmp_path, "a.prom", an_engine_page())
    reader = replayed(path)
    path.unlink()
    reading = reader.read((), 0.0)
    assert not reading.complete
    assert "cannot be read" in reading.findings[0].problem


# Pushes.


@contextmanager
def receiving(**options: Any) -> Iterator[PushSource]:
    told = {"port": 0, "token": TOKEN, "timeout_s": 5.0} | options
    with closing(push(told, SystemClock())) as receiver:
        yield receiver


def pushed(
    receiver: PushSource, path: str, content: str = "", *, method: str = "POST", token: str = TOKEN
) -> int:
    url = f"http://127.0.0.1:{receiver.port}{path}"
    with httpx.Client(trust_env=False) as client:
        try:
            return client.request(
                method, url, content=content, headers={"Authorization": f"Bearer {token}"} if token else {}
            ).status_code
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return 0


def test_engines_push_and_say_when_they_are_gone() -> None:
    path = "/metrics/job/engine/instance/10.0.0.1:8000/namespace/prod/pod/llama-0"
    with receiving() as receiver:
        assert pushed(receiver, path, an_engine_page()) == 200
        engine = only(receiver.read((), SystemClock().unix_s()))
        assert (engine.instance, engine.namespace, engine.running) == ("llama-0:8000", "prod", 3)
        assert pushed(receiver, path, method="DELETE") == 200
        assert receiver.read((), SystemClock().unix_s()).engines == ()


def test_an_engine_that_is_silent_for_long_is_gone() -> None:
    with receiving(forget_s=100.0) as receiver:
        pushed(receiver, "/metrics/instance/a:1", an_engine_page())
        now_s = SystemClock().unix_s()
        assert len(receiver.read((), now_s + 90).engines) == 1
        assert receiver.read((), now_s + 110).engines == ()


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/metrics/instance/a:1", "another-token-of-nobody", 401),
        ("/metrics/instance/a:1", "", 401),
        ("/", TOKEN, 404),
        ("/metrics/instance", TOKEN, 404),
        ("/metrics/colour/red/instance/a", TOKEN, 404),
        ("/metrics/instance/%00", TOKEN, 404),
    ],
)
def test_pushes_without_token_or_to_nowhere_are_refused_and_counted(
    path: str, token: str, status: int
) -> None:
    with receiving() as receiver:
        assert pushed(receiver, path, an_engine_page(), token=token) == status
        reading = receiver.read((), SystemClock().unix_s())
        assert reading.engines == ()
        assert "1 pushes refused" in reading.findings[0].problem
        assert receiver.read((), SystemClock().unix_s()).findings == ()


def test_pushes_are_bounded_in_size_and_number() -> None:
    with receiving(most_bytes=100_000, most_origins=1) as receiver:
        assert pushed(receiver, "/metrics/instance/a:1", "x" * 100_001) in {413, 0}
        assert pushed(receiver, "/metrics/instance/a:1", an_engine_page()) == 200
        assert pushed(receiver, "/metrics/instance/b:1", an_engine_page()) == 429
        assert pushed(receiver, "/metrics/instance/a:1", an_engine_page()) == 200


def test_a_push_that_never_ends_is_cut_and_others_are_served() -> None:
    with receiving(timeout_s=0.3, at_once=1) as receiver:
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as slow:
            slow.sendall(f"POST /metrics/instance/a:1 HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 99\r\n\r\n".encode())  # fmt: skip
            slow.recv(100)
            assert slow.recv(100) == b""
        assert pushed(receiver, "/metrics/instance/a:1", an_engine_page()) == 200


def test_the_receiver_listens_on_loopback_alone() -> None:
    with receiving() as receiver:
        assert receiver._server is not None
        assert receiver._server.server_address[0] == "127.0.0.1"


def test_a_taken_port_is_a_matter_of_time() -> None:
    with receiving() as receiver, pytest.raises(TemporaryError, match="port"):
        push({"port": receiver.port, "token": TOKEN}, SystemClock())


@pytest.mark.parametrize("options", [{}, {"token": "short"}, {"token": TOKEN, "token_file": "/x"}, {"token_file": "/nowhere"}])  # fmt: skip
def test_a_receiver_needs_a_token(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        push({"port": 0} | options, SystemClock())
    assert TOKEN not in str(refused.value)


def test_every_built_in_source_is_found_by_name() -> None:
    assert set(METRICS_SOURCES.names()) >= {"endpoints", "files", "prometheus", "push"}
    assert METRICS_SOURCES.group == "fleetplan.metrics-source"
    with pytest.raises(ConfigurationError, match="prometheus"):
        open_source("promethues", {}, FakeClock())


def test_variants_are_attributed_by_every_source() -> None:
    variant = VariantObservation(name="v", namespace="prod", model="m", target=KubernetesObject(name="v"), pods=("llama-0",))  # fmt: skip
    book = PageBook()
    book.take(ENGINE, an_engine_page(), 1e9)
    assert only_of(book.reading([variant], 1e9)) == "v"


def only_of(reading: MetricsReading) -> str:
    return only(reading).variant
