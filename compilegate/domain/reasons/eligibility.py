"""Codes of eligibility, some of which planning and the judge give as well."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain.reasons import ReasonKind, Severity

BLOCK, WARN, INFO = (Severity.BLOCK,), (Severity.WARN,), (Severity.INFO,)
EITHER = (Severity.BLOCK, Severity.WARN)

ELIGIBILITY: Mapping[str, ReasonKind] = {
    "data_bound": ReasonKind(
        EITHER,
        "Most of the waiting is for data; `block`: even the best plausible speed-up is below "
        "`policy.promote_speedup`.",
        "Fix the data loader first: more workers, prefetching, local or sharded data. The "
        "message says what that is worth.",
    ),
    "communication_bound": ReasonKind(
        EITHER,
        "As `data_bound`, for gradient exchange.",
        "Communicate less: a larger batch, fewer synchronisations, fewer nodes.",
    ),
    "speedup_below_policy": ReasonKind(
        BLOCK,
        "Little of a step is waiting, yet no compiler is assumed to reach "
        "`policy.promote_speedup`.",
        "Lower `policy.promote_speedup`.",
    ),
    "low_gpu_utilization": ReasonKind(
        WARN,
        "The GPU is idle more than half of the time, and the profile does not explain why.",
        "Find out what the GPU waits for.",
    ),
    "not_gpu": ReasonKind(
        BLOCK,
        "The job has no GPU, or no tensor graph (trees, classical models).",
        "Use a GPU instance. For trees, use `tree_method=hist`, distributed XGBoost or LightGBM.",
    ),
    "framework_unsupported": ReasonKind(
        BLOCK,
        "The compiler does not support this framework.",
        "Use another compiler, or none.",
    ),
    "version_unsupported": ReasonKind(
        BLOCK,
        "The compiler does not support this version; the managed one not even some that the "
        "SDK accepts or that its documentation names.",
        "The message lists the nearest configurations as lines to copy.",
    ),
    "no_compiler_image": ReasonKind(
        BLOCK,
        "No image of the baseline's or the candidate's versions is on file.",
        "Use other versions, or name your own image under `facts.images`.",
    ),
    "image_unpatched": ReasonKind(
        (Severity.WARN, Severity.INFO),
        "The image gets no security patches any more; always so of the managed compiler.",
        "Prefer `torch_compile`, or plan the move to a patched version.",
    ),
    "region_unsupported": ReasonKind(
        BLOCK,
        "The image is not published in this region, the managed compiler's not in China or "
        "GovCloud.",
        "Use another region.",
    ),
    "instance_unsupported": ReasonKind(
        BLOCK,
        "The instance type is not on file (nor is local mode), or the managed compiler does "
        "not support its family (`p4de`, `p5`, `g6`, …).",
        "Use `g5`, `g4dn` or `p4d`.",
    ),
    "instance_retired": ReasonKind(
        BLOCK,
        "SDK and API accept the instance type, but EC2 no longer offers it (`p3`).",
        "Use a current type.",
    ),
    "heterogeneous_cluster": ReasonKind(
        BLOCK,
        "`training.instance_groups` is set, which the managed compiler rejects; a trial "
        "measures clusters of one type.",
        "Measure the part that trains.",
    ),
    "distribution_unsupported": ReasonKind(
        BLOCK,
        "The launcher does not work with the compiler, framework, version or instance type.",
        "Use the launcher that the message names.",
    ),
    "distribution_missing": ReasonKind(
        EITHER,
        "No distribution uses the job's several GPUs together, or `pytorchxla` is disabled by "
        "hand.",
        "Use `torch_distributed`, or `pytorchxla` with the managed compiler.",
    ),
    "compiler_disabled": ReasonKind(
        BLOCK,
        "The hyperparameter `sagemaker_training_compiler_enabled: false` is set.",
        "Remove it.",
    ),
    "compiler_debug": ReasonKind(
        BLOCK,
        "The hyperparameter `sagemaker_training_compiler_debug_mode: true` is set.",
        "Remove it.",
    ),
    "reserved_hyperparameter": ReasonKind(
        BLOCK,
        "Another `sagemaker_…` hyperparameter, which the toolkit reads and the script does not.",
        "Remove it.",
    ),
    "profiler_on": ReasonKind(
        WARN,
        "A hyperparameter is an argument of the SDK's debugger or profiler.",
        "Remove it.",
    ),
    "script_needs_port": ReasonKind(
        WARN,
        "The script must contain XLA calls, `_mp_fn`, `TF_CONFIG` or fp8 code.",
        "Port it and name it as the candidate's `entry_point`.",
    ),
    "script_unsupported": ReasonKind(
        BLOCK,
        "`pytorchxla` starts Python scripts only.",
        "Name a `.py` file.",
    ),
    "no_same_version_baseline": ReasonKind(
        WARN,
        "These versions have no image without the compiler, so a comparison mixes both.",
        "Use versions that have one.",
    ),
    "same_job": ReasonKind(
        BLOCK,
        "The request equals the baseline's or an earlier candidate's, such as `pytorchddp` and "
        "`smddp` on the PyTorch estimator.",
        "Remove the candidate.",
    ),
    "framework_downgrade": ReasonKind(
        INFO,
        "The candidate uses an older version.",
        "The control `NAME-native`, where there is one, measures what that costs.",
    ),
    "framework_change": ReasonKind(
        INFO,
        "The candidate uses a newer version, or moves between TensorFlow and PyTorch.",
        "Read version and compiler as one bundle.",
    ),
    "family_unproven": ReasonKind(
        WARN,
        "Families `custom` and `diffusion` gain in some cases and lose in others.",
        "Measure it.",
    ),
    "dynamic_shapes": ReasonKind(
        WARN,
        "Every new shape may trigger a recompilation.",
        "Pad to a few fixed lengths and count non-padding tokens.",
    ),
    "padding_longest": ReasonKind(
        WARN,
        "Almost every batch has a shape of its own.",
        "Use `max_length` or a few buckets.",
    ),
    "ragged_last_batch": ReasonKind(
        INFO,
        "The last batch of an epoch is smaller and compiles again.",
        "Set `drop_last: true`.",
    ),
    "shapes_by_augmentation": ReasonKind(
        WARN,
        "Of a vision or diffusion model with `static: true` and `padding: none`, only cropping "
        "and resizing keep the shapes equal.",
        "Check every augmentation path, evaluation included.",
    ),
    "custom_loader": ReasonKind(
        WARN,
        "`shapes.loader: custom` may be the bottleneck and may change shapes.",
        "Measure it and set `profile.data_wait_fraction`.",
    ),
    "run_too_short": ReasonKind(
        EITHER,
        "A run ends before compiling has paid off (`warn`: before it has without a compile cache).",
        "Compile longer runs, measure the compile time, keep the compile cache.",
    ),
    "compile_mode_cost": ReasonKind(
        (Severity.INFO, Severity.WARN),
        "`max-autotune` compiles for a long time; `reduce-overhead` takes more memory and a "
        "CUDA graph for each shape.",
        "Try the default mode first.",
    ),
    "fp32_only": ReasonKind(
        WARN,
        "The job trains in fp32. The message gives the published gain of bf16 or fp16 and of a "
        "compiler, on which GPU, and how far it can be trusted.",
        "Add a candidate with that precision.",
    ),
    "precision_unsupported": ReasonKind(
        EITHER,
        "The GPU has no fp8 (`block`), or no hardware support for bf16 or tf32 (`warn`).",
        "Use an L4, L40S, H100 or H200 for fp8, and fp16 on older GPUs.",
    ),
    "learning_rate_unscaled": ReasonKind(
        WARN,
        "The global batch changes and the learning rate does not.",
        "Set `learning_rate_scaling: linear` or `sqrt`.",
    ),
    "learning_rate_warmup": ReasonKind(
        INFO,
        "The learning rate is scaled; the message gives both values.",
        "Warm it up in the script.",
    ),
    "run_length_unscaled": ReasonKind(
        WARN,
        "The global batch changes and the number of steps (`steps`, `max_steps`, "
        "`max_train_steps`, `max_iters`, …) does not, so the amount of training changes.",
        "Copy the hyperparameters from the message.",
    ),
    "warmup_unscaled": ReasonKind(
        WARN,
        "The global batch changes and the number of warm-up steps (`warmup_steps`, "
        "`num_warmup_steps`, …) does not.",
        "Copy the hyperparameters from the message, or warm up by a share of the run.",
    ),
    "batch_may_shrink": ReasonKind(
        WARN,
        "The managed compiler's tested models have a smaller maximum batch with it than without.",
        "Use the largest tested batch, or watch peak memory.",
    ),
    "memory_headroom": ReasonKind(
        EITHER,
        "By `profile.peak_memory_gib` the batch does not fit the GPU (`block`) or may not "
        "(`warn`). Weights and optimizer, which do not grow with it, make this an upper bound.",
        "Use the batch size that the message names.",
    ),
    "saving_below_trial_cost": ReasonKind(
        BLOCK,
        "The expected saving is below the cost of measuring it or of proving quality, or too "
        "few production runs remain.",
        "Leave it off, and check again when the schedule changes.",
        "{but}a proof would cost more than it saves",
    ),
    "trial_over_budget": ReasonKind(
        WARN,
        "The trial costs, or would cost, more than `policy.max_trial_usd`.",
        "Raise `policy.max_trial_usd`, shorten the run, or name fewer candidates.",
        "{but}the cost cap was reached",
        {"plan": "the trial would cost more than its cap"},
    ),
    "price_unknown": ReasonKind(
        WARN,
        "No price is on file, so there are no economics and no plan.",
        "Set `facts.prices` in the workload file, or `price_overrides` in `cdk.json`.",
        "the trial's cost cannot be estimated",
    ),
    "cluster_too_dear": ReasonKind(
        WARN,
        "At its price the candidate's cluster would have to be more than 3 times as fast.",
        "Use a smaller or cheaper cluster.",
    ),
    "history_missing": ReasonKind(
        INFO,
        "Fewer than five past results of the metric are given.",
        "List them under `quality.history`.",
    ),
    "underpowered": ReasonKind(
        WARN,
        "The metric varies too much from run to run to prove the margin.",
        "Widen `quality.margin`, or use a metric that varies less.",
        "{metric} varies too much to prove a margin of {margin}",
    ),
    "starts_from_previous": ReasonKind(
        WARN,
        "A run starts from the last run's model, whichever arm trained it, so a trial makes "
        "all full runs itself.",
        "Let each arm continue from its own last model and say `training.starts_from: own_line`, "
        "or watch more runs (`policy.probation_runs`).",
    ),
    "starts_from_own_line": ReasonKind(
        INFO,
        "Each arm continues from its own last model, so its runs resemble each other.",
        "`policy.quality_runs: shadow` makes runs that do not depend on each other.",
    ),
    "start_unsaid": ReasonKind(
        WARN,
        "An input or a hyperparameter may hold an earlier run's model. Until "
        "`training.starts_from` is set, a trial makes all full runs itself.",
        "Say in `training.starts_from` whether it does.",
    ),
    "margin_wide": ReasonKind(
        WARN,
        "A metric between 0 and 1 may fall by more than half of its level, which nearly every "
        "candidate passes.",
        "Set the loss that you would accept, in the metric's own unit.",
    ),
}
