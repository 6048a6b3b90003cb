"""Workloads of every kind, sound or not, for what must hold of any."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from compilegate.domain.compilers import MODES, NAMES
from compilegate.domain.workload.model import (
    DISTRIBUTIONS,
    FAMILIES,
    FRAMEWORKS,
    LOADERS,
    PADDINGS,
    PRECISIONS,
    Candidate,
    Framework,
    InstanceGroup,
    Model,
    Profile,
    Schedule,
    Shapes,
    Training,
    Workload,
)
from compilegate.facts import load_facts
from tests.domain.workload_builder import (
    ARTICLE,
    COMPILE,
    MANAGED,
    PAIR,
    PYTORCH_XLA,
    SOUND,
    TENSORFLOW,
    TRCOMP,
    XLA,
    change,
)
from tests.fuzzing import at_most

types = st.sampled_from([*load_facts().instances, "ml.x9.large", "local_gpu"])
versions = st.sampled_from(
    ["1.7-1", "1.10.2", "1.11.0", "1.13.1", "2.1", "2.9.1", "2.11", "2.13.0", "?"]
)
frameworks = st.builds(
    Framework, name=st.sampled_from(FRAMEWORKS), version=versions,
    transformers=st.sampled_from([None, "4.17.0", "4.36"]),
    python=st.sampled_from([None, "py3", "py38", "py310"]),
)  # fmt: skip
hyperparameters = st.dictionaries(
    st.sampled_from([
        "epochs", "rules", "sagemaker_training_compiler_enabled", "sagemaker_program",
        "sagemaker_training_compiler_debug_mode", "sagemaker_pytorch_xla_multi_worker_enabled",
    ]),
    st.sampled_from([True, False, "false", 3]), max_size=2,
)  # fmt: skip
candidates = st.builds(
    Candidate,
    name=st.just("c"),
    compiler=st.sampled_from([None, *NAMES]),
    batch_size=st.none() | st.integers(1, 1024),
    learning_rate_scaling=st.sampled_from([None, "linear", "sqrt", "none"]),
    instance_type=st.none() | types,
    instance_count=st.none() | st.integers(1, 16),
    precision=st.sampled_from([None, *PRECISIONS]),
    distribution=st.sampled_from([None, *DISTRIBUTIONS]),
    compile_mode=st.sampled_from([None, *MODES]),
    framework=st.none() | frameworks,
    entry_point=st.sampled_from([None, "xla.py", "start.sh"]),
    hyperparameters=st.none() | hyperparameters,
)
shares = st.none() | st.floats(0, 1)
seconds = st.none() | st.floats(0, 1e4)
profiles = st.builds(
    Profile, shares, shares, shares, peak_memory_gib=st.none() | st.floats(0.1, 200),
    compile_seconds=seconds, compile_seconds_cold=seconds,
)  # fmt: skip
workloads = st.builds(
    Workload,
    name=st.just("w"),
    framework=frameworks,
    model=st.builds(
        Model, family=st.sampled_from(FAMILIES), name=st.sampled_from(["gpt2", "bert-base-uncased"])
    ),
    training=st.builds(
        Training, source_dir=st.just("."), entry_point=st.just("t.py"),
        instance_type=st.sampled_from([*load_facts().instances, "", "ml.x9.large"]),
        instance_count=st.integers(1, 64), distribution=st.sampled_from(DISTRIBUTIONS),
        precision=st.sampled_from(PRECISIONS), batch_size=st.integers(1, 4096),
        learning_rate=st.just(0.1), max_runtime_hours=st.just(1.0),
        hyperparameters=st.just({}) | hyperparameters,
        instance_groups=st.just(()) | st.just((InstanceGroup("a", "ml.g5.xlarge", 1),)),
    ),
    shapes=st.builds(
        Shapes, st.booleans(), st.sampled_from(PADDINGS), st.booleans(), st.sampled_from(LOADERS)
    ),
    schedule=st.builds(Schedule, st.floats(0.01, 1e4), st.floats(1e-4, 600)),
    quality=st.builds(
        dataclasses.replace, st.just(SOUND.quality),
        history=st.lists(st.floats(-10, 10), max_size=6).map(tuple),
    ),
    profile=st.none() | profiles,
    candidates=st.lists(candidates, max_size=3).map(
        lambda found: tuple(
            dataclasses.replace(one, name=f"c{index}") for index, one in enumerate(found)
        )
    ),
)  # fmt: skip
quick = at_most(80)

# Of these most candidates may be tried.
mostly_sound = st.builds(
    lambda base, found, cap, schedule, history, profile: change(
        base,
        candidates=tuple(
            dataclasses.replace(one, name=f"c{index}") for index, one in enumerate(found)
        ),
        policy__max_trial_usd=cap, schedule=schedule, quality__history=history, profile=profile,
    ),
    st.sampled_from([SOUND, ARTICLE, TRCOMP, TENSORFLOW, PYTORCH_XLA]),
    st.lists(
        st.sampled_from([COMPILE, MANAGED, XLA, PAIR, Candidate("bf16", precision="bf16")]).flatmap(
            lambda one: st.builds(
                dataclasses.replace, st.just(one), batch_size=st.none() | st.integers(8, 128),
                instance_type=st.sampled_from([None, None, "ml.p4d.24xlarge", "ml.g6e.48xlarge"]),
                instance_count=st.sampled_from([None, None, 2]),
            )
        ),
        max_size=3,
    ),
    st.sampled_from([10.0, 5000.0, 1e7]),
    st.builds(Schedule, st.floats(0.05, 1000), st.floats(0.3, 48)),
    st.lists(st.floats(0.9, 0.92), max_size=7).map(tuple),
    st.none() | st.builds(Profile, st.floats(0.5, 1), st.floats(0, 0.3), st.floats(0, 0.2)),
)  # fmt: skip
