"""Screens of calibration and of one variant, as somebody looked at them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

from models.calibration import Calibration, FittedPoint, LeftOut, LimitedBy, ThresholdProposal
from models.explanation import Reason
from models.hardware import Accelerator
from models.llm import Llm
from models.performance import Interval, Origin, Rating, RatingQuestion, Unrated
from models.picture import LoadRow, MemoryPicture, SourceAnswer, VariantPicture
from models.queueing import FitInterval, FitQuality, QueueingParameters
from models.queueing_profile import QueueingProfile
from models.saturation import Headroom, SaturationThresholds
from planner.cli.calibration_files import profile_text, thresholds_text
from planner.cli.screen.calibration import show_calibration, show_proposals
from planner.cli.screen.variant import show_picture
from planner.cli.terminal import console_on

Golden = Callable[[str, str], None]

CALIBRATION: Final = Calibration(
    profile=QueueingProfile(
        llm="Llama-3.1-8B", accelerator="H100", engine="vllm", source="run-1.json, run-2.json",
        parameters=QueueingParameters(alpha_ms=6.5, beta_ms_per_token=0.022, gamma_ms_per_token=5e-5, max_batch=128),
        fit=FitQuality(
            points=2, itl_error=0.021, ttft_error=0.11, alpha_ms=FitInterval(low=6.2, high=6.9),
            beta_ms_per_token=FitInterval(low=0.018, high=0.026), gamma_ms_per_token=FitInterval(low=4e-5, high=6e-5),
        ),
    ),
    points=(
        FittedPoint(place="run-1.json", input_tokens=1024, output_tokens=512, in_service=1, itl_s=0.0067, itl_fitted_s=0.0066, ttft_s=0.041, ttft_fitted_s=0.036, rps=0.29, rps_fitted=0.3),
        FittedPoint(place="run-2.json", input_tokens=1024, output_tokens=512, in_service=64, itl_s=0.03, itl_fitted_s=0.0128, ttft_s=0.05, ttft_fitted_s=0.052, rps=9.1, rps_fitted=9.6, outlier=True),
        FittedPoint(place="run-3.json", input_tokens=1024, output_tokens=512, in_service=300, itl_s=0.019, rps=8.0, left_out=LeftOut.KV_FULL),
    ),
    condition=6.1,
    ttft_was_used=True,
    notes=("max_batch is not from the data: give --max-batch, the engine's max_num_seqs",),
)  # fmt: skip
PROPOSALS: Final = (
    ThresholdProposal(
        variant="Llama-3.1-8B@H100", accelerator="H100", input_tokens=1024, output_tokens=512,
        thresholds=SaturationThresholds(tau_kv=0.62, gamma_kv=0.08, tau_queue=4, gamma_queue=1.5),
        headroom=Headroom(relative=0.21), limited_by=LimitedBy.SLO, knee_rps=9.3, last_good=5, burst=0.21,
        startup_s=95, arrival_cv=1.3, notes=(),
    ),
)  # fmt: skip
PICTURE: Final = VariantPicture(
    question=RatingQuestion.model_validate(
        {
            "llm": Llm.model_validate({"id": "one", "parameters": 10**9, "layers": 10, "attention": {"kind": "gqa", "kv_heads": 4, "head_dim": 100}}),
            "accelerator": Accelerator.model_validate({"id": "acc", "vendor": "Acme", "memory_bytes": 80 * 2**30}),
            "variant": {"id": "v", "accelerator": "acc", "parallelism": {"tp": 2}},
            "input_tokens": 4096, "output_tokens": 1024, "slo": {"ttft_s": 1, "itl_s": 0.03, "at": 95.0}, "thresholds": {},
        }
    ),
    memory=MemoryPicture(memory_bytes=80 * 2**30, weight_bytes=20 * 2**30, reserve_bytes=4 * 2**30, kv_bytes=48 * 2**30, unused_bytes=8 * 2**30, missing_bytes=0, kv_tokens=400_000, requests=86),
    answer=Rating(rated_rps=4.3, surge_rps=4.9, ttft_s=0.6, itl_s=0.029, origin=Origin.MODELED, source="roofline (measured: no measurement)", interval=Interval(low_rps=3.1, high_rps=6.2, probability=0.8)),
    answers=(SourceAnswer(source="measured", answer=Unrated(reason=Reason.NO_MEASUREMENT, facts={"llm": "one"})),),
    loads=(
        LoadRow(in_flight=8, rps=1.1, ttft_s=0.2, itl_s=0.011, keeps=True, origin=Origin.MODELED, source="roofline"),
        LoadRow(in_flight=64, rps=4.2, ttft_s=0.6, itl_s=0.028, keeps=True, origin=Origin.MODELED, source="roofline"),
        LoadRow(in_flight=256, rps=7.0, ttft_s=1.6, itl_s=0.06, keeps=False, origin=Origin.MODELED, source="roofline"),
    ),
)  # fmt: skip


def test_a_fit(golden: Golden) -> None:
    file = io.StringIO()
    show_calibration(console_on(file), CALIBRATION)
    golden("calibrate-fit-piped.txt", file.getvalue())


def test_thresholds(golden: Golden) -> None:
    file = io.StringIO()
    show_proposals(console_on(file), PROPOSALS)
    golden("calibrate-thresholds-piped.txt", file.getvalue())


def test_files_that_calibration_writes(golden: Golden) -> None:
    golden("calibrate-profile.yaml", profile_text([CALIBRATION]))
    golden("calibrate-thresholds.yaml", thresholds_text(PROPOSALS, service=None))


def test_a_variant(golden: Golden) -> None:
    file = io.StringIO()
    show_picture(console_on(file), PICTURE)
    golden("catalog-show-variant-piped.txt", file.getvalue())
