"""Whether one process may have a Hugging Face Trainer save while the others train on."""

import sys

# Attributes of Trainers: those before 4.31, which have no accelerator, and later ones.
SHARDING = (
    "sharded_ddp", "fsdp", "deepspeed", "is_fsdp_enabled", "is_fsdp_xla_enabled",
    "is_deepspeed_enabled", "is_tp_enabled",
)  # fmt: skip
# Every process waits for the others in their saves.
WAITING = ("torch_xla", "smdistributed.modelparallel")


def saves_alone(trainer, processes):
    """Whether each of the job's ``processes`` has all that a checkpoint needs.

    A sharded Trainer's save is a collective: one process alone would wait in it until it is killed.
    The Trainer also waits for every process where it has seen a best checkpoint.
    """
    if processes == 1:
        return True
    state = getattr(trainer, "state", None)
    if trainer is None or getattr(state, "best_global_step", None):
        return False
    if any(getattr(trainer, name, None) for name in SHARDING):
        return False
    if any(name in sys.modules for name in WAITING):
        return False
    accelerator = getattr(trainer, "accelerator", None)
    if accelerator is None:
        return True
    kind = getattr(accelerator, "distributed_type", "")
    replicated = str(getattr(kind, "value", kind)).startswith("MULTI_")  # MULTI_GPU, say
    return replicated and not getattr(accelerator, "parallelism_config", None)
