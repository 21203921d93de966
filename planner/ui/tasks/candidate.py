"""All that is known of one variant of a scenario, at one request shape and in each pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.scenario import Scenario
from models.workload import Bucket
from planner.picturing import picture_candidate, service_alone
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter

__all__ = ["candidate_task", "run"]


def candidate_task(scenario: Scenario, service: str, variant: str, bucket: Bucket) -> Task:
    """The task that looks at a variant; edits of other services do not make it another one.

    Raises:
        ConfigurationError: the scenario has no such service.
    """
    fields = service_alone(scenario, service).model_dump(mode="json", exclude_defaults=True)
    return Task(
        "candidate",
        {
            "scenario": fields,
            "service": service,
            "variant": variant,
            "bucket": bucket.model_dump(mode="json"),
        },
    )


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """A :class:`~models.picture.CandidatePicture`, JSON."""
    del report
    scenario = Scenario.model_validate(given["scenario"])
    bucket = Bucket.model_validate(given["bucket"])
    found = picture_candidate(scenario, given["service"], given["variant"], bucket=bucket)
    return found.model_dump_json()
