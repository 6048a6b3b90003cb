"""Codes of the watch over production after a promotion."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain.reasons import ReasonKind, Severity

BLOCK, WARN, INFO = (Severity.BLOCK,), (Severity.WARN,), (Severity.INFO,)

PRODUCTION: Mapping[str, ReasonKind] = {
    "quality_regressed": ReasonKind(
        BLOCK,
        "The metric got worse in production, confirmed by runs of both arms.",
        "Remove the cause and rerun the trial.",
        "{metric} got worse in production",
    ),
    "speedup_gone": ReasonKind(
        BLOCK,
        "The speed-up is gone in production, confirmed by runs of both arms.",
        "Remove the cause and rerun the trial.",
        "the speed-up is gone in production",
    ),
    "alarm": ReasonKind(
        WARN,
        "Production looks worse. Runs of both arms check it; the flag stays on.",
        "",
        "an alarm is being checked",
    ),
    "alarm_cleared": ReasonKind(
        INFO,
        "An alarm was checked and not confirmed.",
    ),
    "probation_goes_on": ReasonKind(
        INFO,
        "No alarm so far; more runs are watched.",
        "",
        "no alarm so far in production",
    ),
    "probation_passed": ReasonKind(
        INFO,
        "Quality and speed held for `policy.probation_runs` runs.",
    ),
    "probation_weak": ReasonKind(
        WARN,
        "The metric varies too much for the probation to detect a loss.",
        "Use a metric that varies less, or raise `policy.probation_runs`.",
    ),
    "quality_not_watched": ReasonKind(
        WARN,
        "Production runs recorded no metric.",
        "Record the metric. Until enough runs have it, the promotion stays on probation.",
    ),
    "speed_not_watched": ReasonKind(
        WARN,
        "Production runs recorded no wall-clock time, or did other work than the baseline's.",
        "Record the wall-clock time, and train the same steps in both arms. Until enough runs do, "
        "the promotion stays on probation.",
    ),
    "run_unreadable": ReasonKind(
        WARN,
        "Some production runs recorded what the judge cannot read.",
        "Repair what the job records. Unreadable runs do not count.",
    ),
    "nothing_to_judge": ReasonKind(
        WARN,
        "The candidate's last runs recorded nothing to judge.",
        "Check what the jobs record. After 6 such completed runs the promotion becomes stale.",
    ),
    "not_watched": ReasonKind(
        BLOCK,
        "The candidate's runs record nothing to judge, so the promotion is stale.",
        "Check what the jobs record.",
    ),
    "job_of_another_role": ReasonKind(
        WARN,
        "A job with this workload's tags ran as another role, so it was not recorded as its run.",
        "If the job is yours, name its role as `schedule.team_role` and register the file "
        "again; else find out in CloudTrail who started it.",
    ),
    "not_measured": ReasonKind(
        WARN,
        "The flag was turned on by hand with a candidate that no trial measured.",
        "Measure it with a trial; only then can a regression be detected.",
    ),
    "as_proven": ReasonKind(
        INFO,
        "Production again trains what the trial measured.",
    ),
    "image_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the training image; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "framework_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the framework or its version; the promotion "
        "is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "instance_type_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the instance type; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "instance_count_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the number of instances; the promotion is "
        "stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "precision_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the precision; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "distribution_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the distribution; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "batch_size_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the batch size per device; the promotion is "
        "stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "learning_rate_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the learning rate; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "hyperparameters_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the hyperparameters; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "code_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the source code; the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "recorded_image_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the image that the job recorded; the "
        "promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "torch_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the PyTorch version that the job recorded; "
        "the promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "recorded_precision_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the precision that the job recorded; the "
        "promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "code_sha256_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the code that the job recorded; the promotion"
        " is stale.",
        "Start a new trial, or restore what was proven.",
    ),
    "data_schema_sha256_changed": ReasonKind(
        BLOCK,
        "Production differs from what was proven in the columns or types of the data; the "
        "promotion is stale.",
        "Start a new trial, or restore what was proven.",
    ),
}
