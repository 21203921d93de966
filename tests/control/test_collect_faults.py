"""What goes wrong between us and a server: it is told, it is tried again where that helps, and no secret is shown."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.observation import VariantObservation
from models.variant import KubernetesObject
from planner.clock import FakeClock, SystemClock
from planner.control.collectors.prometheus import PrometheusOptions, PrometheusSource, source
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.protocols import MetricsReading
from planner.errors import ConfigurationError
from tests.loopback import free_port
from tests.page_servers import Served, served

SECRET = "s3cret-s3cret-s3cret"  # noqa: S105 - made up
VARIANT = VariantObservation(
    name="llama", namespace="prod", model="llama", target=KubernetesObject(name="llama"), pods=("llama-0",)
)
EMPTY = {"status": "success", "data": {"resultType": "vector", "result": []}}


def read_with(
    answer: Callable[[httpx.Request], httpx.Response], clock: FakeClock | None = None, **options: Any
) -> MetricsReading:
    """A reading of a Prometheus that answers so."""
    ticking = clock or FakeClock(1e9)
    told = PrometheusOptions(url="http://127.0.0.1:1", **{"parallel": 1} | options)
    api = PrometheusApi(told, ticking, within_s=told.within_s, transport=httpx.MockTransport(answer))
    return PrometheusSource(told, ticking, api=api).read([VARIANT], ticking.unix_s())


def always(*content: Any, **more: Any) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(*content, **more)


def problems(reading: MetricsReading) -> str:
    return " ".join(each.problem for each in reading.findings)


def test_a_server_that_is_busy_for_a_moment_is_asked_again_after_doubling_waits() -> None:
    clock, asked = FakeClock(1e9), []

    def busy_at_first(_: httpx.Request) -> httpx.Response:
        asked.append(clock.monotonic_s())
        return httpx.Response(503) if len(asked) < 4 else httpx.Response(200, json=EMPTY)

    assert read_with(busy_at_first, clock).complete
    waits = [later - earlier for earlier, later in pairwise(asked[:4])]
    assert waits == [pytest.approx(wait, rel=0.1001, abs=0) for wait in (0.525, 1.05, 2.1)]


def test_a_server_that_stays_busy_is_left_after_five_tries_and_nothing_is_concluded() -> None:
    asked: list[int] = []

    def busy(_: httpx.Request) -> httpx.Response:
        asked.append(1)
        return httpx.Response(500, text="out of memory")

    reading = read_with(busy)
    assert len(asked) == 5
    assert not reading.complete
    assert "500: out of memory" in problems(reading)
    assert [(each.pod, each.age_s, each.running) for each in reading.engines] == [("llama-0", None, None)]


def test_all_tries_of_a_reading_end_in_time() -> None:
    clock = FakeClock(1e9)

    def slow(request: httpx.Request) -> httpx.Response:
        clock.advance(9.0)
        raise httpx.ReadTimeout("slow", request=request)

    assert not read_with(slow, clock, within_s=20).complete
    assert clock.monotonic_s() <= 30


def test_a_server_says_when_to_come_again() -> None:
    clock, asked = FakeClock(1e9), []

    def limited(_: httpx.Request) -> httpx.Response:
        asked.append(clock.monotonic_s())
        return (
            httpx.Response(429, headers={"Retry-After": "7"})
            if len(asked) == 1
            else httpx.Response(200, json=EMPTY)
        )

    assert read_with(limited, clock).complete
    assert asked[1] - asked[0] == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (always(200, text="<html>login</html>"), "not one of Prometheus"),
        (always(200, content=json.dumps(EMPTY).encode()[:-3]), "not one of Prometheus"),
        (always(200, json={"status": "success", "data": {"resultType": "matrix", "result": []}}), "no vector"),
        (always(200, json=[1, 2]), "not one of Prometheus"),
        (always(200, json={"status": "error", "error": "many-to-many matching"}), "many-to-many"),
        (always(422, json={"status": "error", "error": "bad question"}), "bad question"),
        (always(302, headers={"Location": "https://login"}), "leads elsewhere"),
        (always(401), "does not allow it"),
        (always(403), "does not allow it"),
        (always(200, json={"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"pod": [1]}, "value": [1, "1"]}]}}), "not one of"),
        (always(200, json={"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, {}]}]}}), "not one of"),
        (always(200, content=b"[" * 100_000), "not one of Prometheus"),
        (always(200, content=b"\xff\xfe"), "not one of Prometheus"),
        (always(200, content=b"x" * 5000), "more than 4,000 bytes"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_used_is_told_and_not_tried_again(
    answer: Callable[[httpx.Request], httpx.Response], said: str
) -> None:
    clock = FakeClock(1e9)
    reading = read_with(answer, clock, most_bytes=4000 if "bytes" in said else 10**7)
    assert not reading.complete
    assert said in problems(reading)
    assert clock.monotonic_s() == 0.0


def test_an_answer_that_warns_is_not_a_whole_one() -> None:
    reading = read_with(always(200, json=EMPTY | {"warnings": ["store is down"]}))
    assert not reading.complete
    assert "store is down" in problems(reading)


def test_a_remark_on_the_question_takes_nothing_from_the_answer() -> None:
    assert read_with(always(200, json=EMPTY | {"warnings": ["PromQL warning: no counter"]})).complete


def test_a_question_that_decisions_do_not_rest_on_may_fail() -> None:
    def no_power(request: httpx.Request) -> httpx.Response:
        refused = "DCGM" in request.read().decode()
        return httpx.Response(
            422 if refused else 200, json={"status": "error", "error": "no"} if refused else EMPTY
        )

    reading = read_with(no_power)
    assert reading.complete
    assert any("power_w" in each.subject for each in reading.findings)


def test_arrivals_of_the_past_that_nobody_tells_are_a_finding() -> None:
    told = PrometheusOptions(url="http://127.0.0.1:1")
    api = PrometheusApi(told, FakeClock(), transport=httpx.MockTransport(always(500)))
    history, findings = PrometheusSource(told, FakeClock(), api=api).arrivals([VARIANT], 0.0, 1e6, step_s=1.0)
    assert history == {}
    assert "500" in findings[0].problem


def test_a_proxy_that_takes_no_post_is_asked_with_get() -> None:
    methods = []

    def read_only(request: httpx.Request) -> httpx.Response:
        methods.append(request.method)
        return httpx.Response(405 if request.method == "POST" else 200, json=EMPTY)

    assert read_with(read_only).complete
    assert methods[:3] == ["POST", "GET", "GET"]


def test_one_question_that_fails_makes_the_reading_incomplete_and_keeps_the_others() -> None:
    seen = {"metric": {"namespace": "prod", "pod": "llama-0", "instance": "a:1", "fleetplan_engine": "vllm"}, "value": [1e9, "1e9"]}  # fmt: skip
    running = {"metric": {"namespace": "prod", "pod": "llama-0", "instance": "a:1"}, "value": [1e9, "3"]}

    def partly(request: httpx.Request) -> httpx.Response:
        question = request.read().decode()
        if "max_over_time" in question:
            return httpx.Response(422, json={"status": "error", "error": "too many samples"})
        result = (
            [seen] if "timestamp" in question else [running] if "num_requests_running" in question else []
        )
        return httpx.Response(
            200, json={"status": "success", "data": {"resultType": "vector", "result": result}}
        )

    reading = read_with(partly)
    assert not reading.complete
    assert [(each.running, each.kv_usage) for each in reading.engines] == [(3, None)]


def test_a_vector_written_in_another_way_says_the_same() -> None:
    metric = {"namespace": "prod", "pod": 'a"]},{"metric":', "instance": "a:1", "model_name": "é\n"}
    vector = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": metric, "value": [1e9, "1"]}] * 2}}  # fmt: skip
    asked = []
    for text in (json.dumps(vector, separators=(",", ":")), json.dumps(vector, indent=1)):
        api = PrometheusApi(PrometheusOptions(url="http://127.0.0.1:1"), FakeClock(), transport=httpx.MockTransport(always(200, text=text)))  # fmt: skip
        asked.append(api.query("x").result)
    assert asked[0] == asked[1]
    assert asked[0][0][0] == metric


def test_no_message_shows_the_token_even_where_the_server_repeats_it() -> None:
    def repeats(request: httpx.Request) -> httpx.Response:
        return httpx.Response(500, text=f"denied: {request.headers['Authorization']}")

    reading = read_with(repeats, bearer_token=SECRET)
    assert "denied" in problems(reading)
    assert SECRET not in repr(reading)


def test_options_do_not_show_the_token() -> None:
    options = PrometheusOptions(url="http://127.0.0.1:1", bearer_token=SECRET)
    assert SECRET not in repr(options)
    assert SECRET not in options.canonical_json()
    with pytest.raises(ConfigurationError) as refused:
        source({"url": "ftp://x", "bearer_token": SECRET, "token_file": "/nowhere"}, FakeClock())
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "prometheus:9090"}, "no address"),
        ({"url": "http://prometheus:9090"}, "allow_http"),
        ({"url": f"https://user:{SECRET}@prometheus"}, "a user in the address"),
        ({"url": "https://p", "retrys": {}}, "retries"),
        ({}, "prometheus.url"),
        ({"url": "https://p", "timeout_s": -1, "parallel": 0}, "parallel"),
        ({"url": "https://p", "ca_file": "/nowhere.pem"}, "/nowhere.pem"),
    ],
)
def test_wrong_options_are_refused_with_what_would_do(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        source(options, FakeClock())
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


def test_the_token_file_is_read_again_for_every_call(tmp_path: Path) -> None:
    token, shown = tmp_path / "token", []
    token.write_text("first\n")

    def notes(request: httpx.Request) -> httpx.Response:
        shown.append(request.headers["Authorization"])
        token.write_text("second\n")
        return httpx.Response(200, json=EMPTY)

    assert read_with(notes, token_file=token).complete
    assert shown[:2] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("content", [None, "", "a\nb", "\x00"])
def test_a_token_file_that_cannot_be_used_is_told(tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    reading = read_with(always(200, json=EMPTY), token_file=token)
    assert not reading.complete
    assert "token file" in problems(reading)


def live(server: Served, **options: Any) -> MetricsReading:
    """A reading over the network."""
    told = {"url": server.url, "retries": {"tries": 2, "first_s": 0.01}, "timeout_s": 0.5, "parallel": 1}
    with closing(source(told | options, SystemClock())) as reader:
        return reader.read([VARIANT], 0.0)


def test_half_an_answer_is_none() -> None:
    with served() as server:
        server.answer = lambda *_: (200, {"Content-Length": "1000"}, b'{"status":"success"')
        reading = live(server)
    assert not reading.complete
    assert "broke off" in problems(reading) or "did not" in problems(reading)


def test_an_answer_that_does_not_begin_ends_in_time() -> None:
    with served() as server:

        def late(*_: Any) -> None:
            SystemClock().sleep(2.0)

        server.answer = late
        reading = live(server, retries={"tries": 1})
    assert "did not answer within 0.5 s" in problems(reading)


def test_an_answer_that_drips_ends_in_time() -> None:
    with served() as server:
        server.drip_s = 0.05
        server.answer = lambda *_: (200, {}, json.dumps(EMPTY).encode())
        reading = live(server, retries={"tries": 1})
    assert "did not end its answer within 0.5 s" in problems(reading)


def test_a_port_that_nobody_listens_at_is_told() -> None:
    server = Served()
    server.port = free_port()
    assert "cannot be reached" in problems(live(server))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, a server certificate for 127.0.0.1 and prometheus.test, a client certificate, and one of nobody."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificates")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    for name in ("ca", "stranger"):
        usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        run(
            "req",
            "-x509",
            *key,
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
            "-subj",
            f"/CN={name}",
            *usage,
        )
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:prometheus.test\n")
    for name in ("server", "client"):
        run("req", *key[:-2], "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san", "-out", f"{name}.pem")  # fmt: skip
    return folder


@pytest.fixture
def secure(certificates: Path) -> Iterator[Served]:
    """A server over TLS that asks for a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with served(context) as server:
        server.answer = lambda *_: (200, {}, json.dumps(EMPTY).encode())
        yield server


def test_a_server_is_trusted_by_its_ca_and_trusts_our_certificate(secure: Served, certificates: Path) -> None:
    ours = {"client_cert": certificates / "client.pem", "client_key": certificates / "client.key"}
    assert live(secure, ca_file=certificates / "ca.pem", **ours).complete
    assert live(secure, insecure_skip_verify=True, **ours).complete
    assert not live(secure, ca_file=certificates / "ca.pem").complete


def test_certificates_that_are_renewed_are_read_again(
    secure: Served, certificates: Path, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes((certificates / "stranger.pem").read_bytes())
    options = {
        "url": secure.url,
        "ca_file": ca,
        "client_cert": certificates / "client.pem",
        "client_key": certificates / "client.key",
    }
    with closing(source(options | {"retries": {"tries": 1}}, SystemClock())) as reader:
        assert not reader.read([VARIANT], 0.0).complete
        ca.write_bytes((certificates / "ca.pem").read_bytes())
        assert reader.read([VARIANT], 0.0).complete
        ca.unlink()
        assert "cannot be read" in problems(reader.read([VARIANT], 0.0))


def test_a_server_that_is_not_trusted_is_told_as_such_and_not_tried_again(
    secure: Served, certificates: Path
) -> None:
    for options in ({}, {"ca_file": certificates / "stranger.pem"}):
        reading = live(secure, **options)
        assert not reading.complete
        assert "TLS failed" in problems(reading)
    assert secure.asked == []


def test_a_server_may_have_another_name_than_its_address(certificates: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    with served(context) as server:
        server.answer = lambda *_: (200, {}, json.dumps(EMPTY).encode())
        trust = {"ca_file": certificates / "ca.pem"}
        assert live(server, server_name="prometheus.test", **trust).complete
        assert "TLS failed" in problems(live(server, server_name="another.test", **trust))


def test_an_address_with_a_user_is_not_shown_even_where_something_else_is_wrong() -> None:
    with pytest.raises(ConfigurationError) as refused:
        source(
            {"url": f"https://user:{SECRET}@prometheus" + "x" * 10, "timeout_s": f"https://user:{SECRET}@x"},
            FakeClock(),
        )
    assert SECRET not in str(refused.value)


def test_plain_http_where_tls_is_spoken_and_the_other_way_round_is_told(
    secure: Served, certificates: Path
) -> None:
    assert not live(secure, url=secure.url.replace("https", "http")).complete
    with served() as plain:
        reading = live(plain, url=plain.url.replace("http", "https"))
    assert "TLS failed" in problems(reading)
