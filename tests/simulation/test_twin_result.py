"""Figures of a run from rows that are written down here."""

from __future__ import annotations

import numpy as np

from models.simulation import Outcome, ServiceSpec, TwinSpec
from planner.simulation.result import Result
from tests.twins import a_replica

NEVER = float("nan")
ROWS = (
    # service, outcome, output tokens, first token at, end at; all arrive at 0.
    (0, Outcome.DONE, 11, 0.5, 1.0),
    (0, Outcome.DONE, 11, 0.9, 1.0),
    (0, Outcome.DONE, 11, 0.5, 3.0),
    (0, Outcome.REJECTED_429, 11, NEVER, 0.0),
    (1, Outcome.DONE, 1, 5.0, 5.0),
    (1, Outcome.DONE, 11, 5.0, 9.0),
    (2, Outcome.DONE, 11, 50.0, 900.0),
    (2, Outcome.UNFINISHED, 11, NEVER, NEVER),
)


def a_result() -> Result:
    """A service with promises on both latencies, one on the whole time, one with none."""
    services = (
        ServiceSpec(name="quick", ttft_slo_s=0.5, itl_slo_s=0.1),
        ServiceSpec(name="whole", e2e_slo_s=8.0),
        ServiceSpec(name="any"),
    )
    service, outcome, outputs, first, end = (np.array(column) for column in zip(*ROWS, strict=True))
    return Result(
        spec=TwinSpec(services=services, replicas=(a_replica(service="quick"),)),
        duration_s=10.0,
        arrivals={"quick": 4, "whole": 2, "any": 2},
        requests={
            "request": np.arange(len(ROWS)),
            "service": service,
            "outcome": outcome,
            "output_tokens": outputs,
            "arrival_s": np.zeros(len(ROWS)),
            "first_token_s": first,
            "end_s": end,
        },
        time={},
        variants={},
        replicas=(),
    )


def test_each_service_is_held_to_its_own_promises() -> None:
    result = a_result()
    assert result.served("quick").attainment == 1 / 4
    assert result.served("whole").attainment == 1 / 2
    # The one that is still in flight is not judged.
    assert result.served("any").attainment == 1
    assert result.served().attainment == 3 / 7
    assert result.served().goodput_rps == 0.3
    assert result.kept(result.requests).tolist() == [True, False, False, False, True, False, True, True]
