"""Codes of a trial: what planning, the judge and the limits of a trial say."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain.reasons import ReasonKind, Severity

BLOCK, WARN, INFO = (Severity.BLOCK,), (Severity.WARN,), (Severity.INFO,)

TRIAL: Mapping[str, ReasonKind] = {
    "speedup_proven": ReasonKind(
        INFO,
        "The short blocks prove more than `policy.reject_speedup` and reach "
        "`policy.promote_speedup` on average.",
    ),
    "speedup_too_small": ReasonKind(
        BLOCK,
        "The speed-up is below `policy.reject_speedup`.",
        "Larger models, fewer recompilations and less waiting for data raise the gain.",
        "no useful speed-up, {times} of the required {reject}",
        {"slower": "the candidate is {speed}"},
    ),
    "speedup_below_promote": ReasonKind(
        BLOCK,
        "The speed-up is above `policy.reject_speedup`, but significantly below "
        "`policy.promote_speedup`.",
        "Larger models, fewer recompilations and less waiting for data raise the gain.",
        "{speed}, significantly below the required {promote}",
    ),
    "speed_unsettled": ReasonKind(
        INFO,
        "More short blocks are needed.",
        "The trial continues by itself.",
    ),
    "speed_inconclusive": ReasonKind(
        WARN,
        "The speed-up varies too much between blocks, or none reached a steady state.",
        "Run longer or more blocks.",
        "the speed-up varies too much from block to block",
        {
            "no_steady_state": "no block was long enough to measure a speed-up",
            "faster_not_clearly": "{speed}, not clearly above the required {promote}",
        },
    ),
    "candidate_crashed": ReasonKind(
        BLOCK,
        "The candidate's training crashed or diverged.",
        "Read the reason of the failed run and fix it.",
        "the candidate's training crashed or diverged",
        {"probation": "production runs crashed with the candidate"},
    ),
    "quality_held": ReasonKind(
        INFO,
        "A loss of the margin or more is ruled out.",
    ),
    "weights_identical": ReasonKind(
        INFO,
        "Runs of both arms ended with exactly the same weights, which proves equal quality.",
    ),
    "quality_worse": ReasonKind(
        BLOCK,
        "The metric is significantly worse than the baseline's.",
        "Adjust the learning rate to the candidate, or widen `quality.margin` if the loss is "
        "acceptable.",
        "{but}{metric} is significantly worse",
    ),
    "quality_unsettled": ReasonKind(
        INFO,
        "More full runs are needed.",
        "The trial continues by itself.",
        "{but}full runs to prove {metric} are missing",
    ),
    "quality_inconclusive": ReasonKind(
        WARN,
        "The full runs prove neither that quality holds nor that it is worse.",
        "Widen `quality.margin`, allow more runs, or use a metric that varies less.",
        "{but}{metric} is not shown to hold",
    ),
    "evaluation_limited": ReasonKind(
        INFO,
        "Much of the metric's spread is the choice of evaluation examples; more would spare "
        "full runs.",
        "Score every run, also the baseline's next ones, on as many examples as the message "
        "names, and drop `quality.history`, which was scored on fewer.",
    ),
    "evaluation_sufficient": ReasonKind(
        INFO,
        "The metric's spread is training's; more evaluation examples would not spare full runs.",
    ),
    "seeds_repeated": ReasonKind(
        WARN,
        "Runs of an arm repeat a seed on the same data.",
        "Train every run with the seed that it is given, or with new data.",
        "runs of one seed on the same data prove nothing more than the first of them",
    ),
    "baseline_failed": ReasonKind(
        BLOCK,
        "The baseline itself failed.",
        "Repair the baseline and rerun the trial. In production, the flag stays as it is until "
        "then.",
        "the baseline itself failed: nothing to compare with",
    ),
    "full_run_unmeasured": ReasonKind(
        WARN,
        "Full runs recorded no wall-clock time.",
        "Let the jobs record their wall-clock time.",
        "the time of whole jobs is missing",
    ),
    "full_run_disagrees": ReasonKind(
        BLOCK,
        "The short blocks were fast enough, whole jobs are not.",
        "Make runs longer, or start-up, evaluation and saving faster.",
        "whole jobs are {times}, below the required {reject}",
        {"slower": "whole jobs are {speed}"},
    ),
    "full_run_implausible": ReasonKind(
        BLOCK,
        "Whole jobs are faster than the short blocks leave possible.",
        "Compare the logs of a full run with the baseline's: something that both should do is left "
        "out, or the baseline does it twice.",
        "the time of whole jobs contradicts the short blocks",
    ),
    "full_run_unproven": ReasonKind(
        WARN,
        "Whole jobs are estimated above `policy.reject_speedup`, but not proven above it.",
        "More full runs, on machines of one kind, narrow the interval.",
        "whole jobs are {times}, not proven above the required {reject}",
    ),
    "saving_unproven": ReasonKind(
        WARN,
        "The interval of the saving includes a loss.",
        "Longer runs or a faster start-up raise the gain; more full runs, on machines of one "
        "kind, narrow the interval.",
        "whole jobs are {times}, and may cost more than today's",
    ),
    "runs_as_shadow": ReasonKind(
        INFO,
        "The trial made full runs itself, although policy asks for production's.",
        "Register the workload, so that production can provide runs.",
    ),
    "start_unknown": ReasonKind(
        WARN,
        "An equal start is not proven: no seed has a recorded first loss or initial weights in "
        "both arms.",
        "Let the script record its first loss or initial weights.",
    ),
    "treatment_not_applied": ReasonKind(
        BLOCK,
        "The change was requested but not applied.",
        "Make the script act on the `compiler` hyperparameter; its summary must say `applied`.",
        "the change was requested but not applied",
    ),
    "arms_differ": ReasonKind(
        BLOCK,
        "The arms differ in more than the change.",
        "Use one image, driver, data and code; the fingerprint table marks what differs.",
        "the arms differ in more than the change itself",
    ),
    "arms_continue_each_other": ReasonKind(
        BLOCK,
        "A run of one arm starts from another arm's model.",
        "Say `training.starts_from: previous`, so that the trial makes its own runs, or let "
        "each arm continue from its own last model.",
        "the arms continued from each other's models",
    ),
    "numerics_wrong": ReasonKind(
        BLOCK,
        "The compiled model's gradients are far from those in double precision, and the "
        "uncompiled ones are not.",
        'Find the operation with `torch.compile(backend="aot_eager")` and the minifier of '
        "PyTorch, or try `torch_compile_strict`.",
        "the compiled model computes other gradients",
    ),
    "numerics_differ": ReasonKind(
        WARN,
        "The compiled model's gradients are far less exact than the uncompiled ones, though "
        "close to those in double precision.",
        "Look for a precision that only one arm uses, such as TF32. Full runs decide.",
    ),
    "runs_repeated": ReasonKind(
        BLOCK,
        "Some runs are copies.",
        "Record every run once.",
        "some runs are copies of one another",
    ),
    "unequal_initial_loss": ReasonKind(
        BLOCK,
        "With one seed, the arms start at different losses.",
        "Train the same model on the same data in both arms.",
        "the arms did not start from the same model and data",
    ),
    "unequal_initial_weights": ReasonKind(
        BLOCK,
        "With one seed, the arms start from different weights.",
        "Draw the initial weights from the seed that the script is given.",
        "the arms did not start from the same weights",
    ),
    "unequal_work": ReasonKind(
        BLOCK,
        "Full runs of the arms did not do the same work: steps, samples, tokens, or the time that "
        "they recorded of their jobs.",
        "Let both arms train the same steps on the same samples. Where the script decides when to "
        "stop, declare `quality.early_stopping: true`.",
        "the arms did not do the same work",
    ),
    "evaluation_sets_differ": ReasonKind(
        BLOCK,
        "The arms were scored on different evaluation examples.",
        "Score every run of both arms on the same examples.",
        "the arms were scored on different evaluation examples",
    ),
    "history_other_set": ReasonKind(
        INFO,
        "`quality.history_set` is another evaluation set than the trial's, so past runs do not "
        "count.",
        "Score past models on today's examples, or leave their results out.",
    ),
    "evidence_invalid": ReasonKind(
        BLOCK,
        "What the jobs recorded cannot be read.",
        "Repair what the job records; until then no run is judged.",
        "the jobs' records cannot be read",
    ),
    "evidence_missing": ReasonKind(
        BLOCK,
        "Speed jobs completed, and left no evidence of an arm.",
        "Let the training process itself record its steps, and leave them where "
        "`COMPILEGATE_EVIDENCE_DIR` says; `compilegate try FILE` shows what it records.",
        "speed jobs left no evidence of an arm",
    ),
    "clock_implausible": ReasonKind(
        BLOCK,
        "A job's clock contradicts SageMaker's, or is shorter than the run's own steps.",
        "Let the recorder write the evidence.",
        "a job's clock cannot be right",
    ),
    "evidence_overwritten": ReasonKind(
        BLOCK,
        "A job's output was written more than once.",
        "Find out who may write to the data bucket (CloudTrail data events name them), take "
        "that permission away, and start a new trial.",
        "a job's output was overwritten",
    ),
    "too_many_rounds": ReasonKind(
        BLOCK,
        "The trial used up its rounds without a verdict.",
        "Name fewer candidates. Failed and stopped jobs use up rounds.",
        "{but}not decided in the rounds allowed",
    ),
    "trial_over_time": ReasonKind(
        BLOCK,
        "The next round might not end in time.",
        "Set `training.max_runtime_hours` close to the real run time, or name fewer candidates.",
        "{but}the trial ran out of time",
    ),
    "canary_overdue": ReasonKind(
        BLOCK,
        "Production did not provide the trial's runs in time.",
        "Find out what stopped the schedule, or set `policy.quality_runs: shadow`.",
        "production did not provide the runs in time",
    ),
    "production_changed": ReasonKind(
        BLOCK,
        "Production now trains another job than the trial measures.",
        "Start a new trial.",
        "production changed during the trial",
    ),
    "production_retired": ReasonKind(
        BLOCK,
        "The workload was removed from production while the trial waited for its runs.",
        "Register it again, or set `policy.quality_runs: shadow`, and start a new trial.",
        "the workload was removed from production",
    ),
    "cooling_down": ReasonKind(
        BLOCK,
        "The flag was reverted within the last `policy.cooldown_days`.",
        "Find the cause, then run `compilegate flag revert`, or set `policy.cooldown_days` to 0.",
        "the flag was reverted recently",
    ),
    "ineligible": ReasonKind(
        BLOCK,
        "No candidate is eligible.",
        "`compilegate check FILE` lists every candidate's reasons.",
    ),
    "quota_too_low": ReasonKind(
        BLOCK,
        "The account's quota is too low for a single job.",
        "Request a higher quota, or use fewer instances.",
        "the account's quota is too low for one job",
    ),
    "request_refused": ReasonKind(
        BLOCK,
        "SageMaker would reject the job.",
        "Correct the value that the message names.",
        "SageMaker would reject the job",
    ),
    "flag_too_large": ReasonKind(
        BLOCK,
        "What the candidate changes does not fit the 4 KB of a flag.",
        "Use fewer or shorter hyperparameters.",
        "the candidate's changes do not fit a flag",
    ),
}
