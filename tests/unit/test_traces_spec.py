"""Synthetic traffic: what a line says, and that rates, bursts and lengths come out as asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.errors import ConfigurationError
from planner.traces import HowRead, RequestChunk, open_trace
from planner.traces.chunks import joined
from planner.traces.shapes import Constant, Diurnal, Ramp, Shape, Steps

LENGTHS = "input=100,output=10"


def traffic(line: str, seed: int = 0) -> RequestChunk:
    return joined(list(open_trace(line, HowRead(seed=seed))))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("poisson:rate=5,duration=1h", 18_000),
        ("poisson:rate=300/min,duration=60 min", 18_000),
        ("gamma:rate=5,cv=3,duration=3600", 18_000),
        ("constant:rate=5,duration=1h", 18_000),
        ("staircase:rates=[2,4,0,6],step=15m", 10_800),
        ("staircase:rates=[2,6],step=[30m,15m],duration=1h", 14_400),
        ("ramp:from=0,to=10,duration=1h", 18_000),
        ("ramp:from=10,to=0,duration=1h,cv=0", 18_000),
        ("diurnal:low=1,high=9,period=1h,duration=2h", 36_000),
        ("diurnal:low=0,high=10,period=1h,peak=10m,duration=1h,cv=2", 18_000),
    ],
)
def test_as_many_requests_come_as_the_rate_says(line: str, expected: int) -> None:
    chunk = traffic(f"{line},{LENGTHS}", seed=4)
    assert len(chunk) == pytest.approx(expected, rel=0.05)
    assert bool(np.all(np.diff(chunk.arrival_s) >= 0))
    assert chunk.arrival_s[0] >= 0


@pytest.mark.parametrize(("cv", "tolerance"), [(0, 1e-6), (0.5, 0.02), (1, 0.03), (4, 0.4)])
def test_gaps_scatter_as_asked(cv: float, tolerance: float) -> None:
    gaps = np.diff(traffic(f"constant:rate=10,cv={cv},requests=40000,{LENGTHS}").arrival_s)
    assert np.mean(gaps) == pytest.approx(0.1, rel=0.12 if cv > 1 else 0.02)
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(cv, abs=tolerance)


@pytest.mark.parametrize(
    "shape",
    [
        Constant(3.0, 100.0),
        Steps((2.0, 0.0, 5.0), (10.0, 10.0, 20.0)),
        Ramp(0.0, 8.0, 50.0),
        Ramp(8.0, 1.0, 50.0),
        Diurnal(0.0, 6.0, 40.0, 11.0, 100.0),
    ],
)
def test_times_of_a_shape_undo_its_counts(shape: Shape) -> None:
    """The rate between two times, taken back from where counts lie, is the rate of the shape."""
    counts = np.linspace(0.0, shape.expected, 2001)
    times = shape.time_of(counts)
    assert bool(np.all(np.diff(times) >= 0))
    assert times[0] == pytest.approx(0.0, abs=1e-6)
    assert times[-1] <= shape.duration_s + 1e-6
    # Halfway in counts there are as many before as after, by a count of a fine grid of times.
    grid = np.searchsorted(times, np.linspace(0, shape.duration_s, 100_001)) / 2000 * shape.expected
    middle = shape.time_of(np.array([shape.expected / 2]))[0]
    assert grid[round(middle / shape.duration_s * 100_000)] == pytest.approx(shape.expected / 2, rel=2e-3)


@pytest.mark.parametrize(
    ("form", "mean", "low", "high"),
    [
        ("512", 512, 512, 512),
        ("uniform(10,20)", 15, 10, 20),
        ("normal(4096,2048,10,8192)", 4085, 10, 8192),
        ("normal(100,10)", 100, 1, 10**8),
        ("lognormal(300,200)", 300, 1, 10**8),
        ("lognormal(300,200,50,500)", 271, 50, 500),
    ],
)
def test_lengths_are_drawn_as_asked(form: str, mean: float, low: int, high: int) -> None:
    drawn = traffic(f"poisson:rate=5,requests=50000,input={form},output=3").input_tokens
    assert np.mean(drawn) == pytest.approx(mean, rel=0.02)
    assert low <= drawn.min() <= drawn.max() <= high


def test_the_same_seed_gives_the_same_requests_and_another_one_others() -> None:
    line = "gamma:rate=5,cv=2,duration=5m,input=normal(100,30),output=uniform(1,50)"
    one, again, other = traffic(line, 1), traffic(line, 1), traffic(line, 2)
    assert np.array_equal(one.arrival_s, again.arrival_s)
    assert np.array_equal(one.output_tokens, again.output_tokens)
    assert not np.array_equal(one.arrival_s, other.arrival_s)
    assert np.array_equal(one.arrival_s, traffic(f"{line},seed=1", 9).arrival_s)


def test_yaml_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "traffic"
    path.write_text("kind: staircase\nrates: [1, 3]\nstep: 5m\ninput: normal(100,30)\noutput: 7\n")
    line = "staircase:rates=[1,3],step=5m,input=normal(100,30),output=7"
    assert np.array_equal(traffic(str(path)).arrival_s, traffic(line).arrival_s)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("poisson:rate=x,duratio=3,input=normal(3),foo",
         ["found 'foo'", "duratio: found an unknown key", "did you mean 'duration'?", "rate: found 'x'",
          "duration: found nothing", "input: found 'normal(3)'", "output: found nothing"]),
        ("gamma:rate=1,duration=1,input=1,output=1", ["cv: found nothing"]),
        ("poisson:rate=1,rate=2,duration=1,input=1,output=1", ["rate: found this key twice"]),
        ("poisson:rate=-1,duration=1,input=0,output=2.5", ["rate: found", "input: found '0'", "output: found '2.5'"]),
        ("staircase:rates=[1,2],step=[1,2,3],input=1,output=1", ["3 lengths for 2 rates"]),
        ("staircase:rates=[],step=5,input=1,output=1", ["rates: found an empty list"]),
        ("staircase:rates=[0],step=5,input=1,output=1", ["a rate above 0"]),
        ("diurnal:low=5,high=2,duration=1h,input=1,output=1", ["low: found 5; allowed: at most high"]),
        ("ramp:from=0,to=0,duration=1h,input=1,output=1", ["a rate above 0 at one end"]),
        ("poisson:rate=1,duration=1,cv=-3,seed=x,requests=0,input=1,output=1", ["cv: ", "seed: ", "requests: "]),
        ("poisson:rate=1,duration=1,lengths=/none,input=1", ["lengths: found input or output beside it"]),
        ("poisson:rate=1,duration=1,lengths=/none", ["no such file"]),
        ("servegen:clients=a,rates=b,tokens=c", ["one of clients=FILE and rates=FILE"]),
    ],
)  # fmt: skip
def test_everything_wrong_with_a_line_is_in_one_message(line: str, said: list[str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        open_trace(line, HowRead())
    for part in said:
        assert part in str(error.value)
