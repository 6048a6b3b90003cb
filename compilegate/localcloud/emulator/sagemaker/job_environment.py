"""Command line and environment of a training process, as SageMaker's script mode makes them.

Source: sagemaker-training toolkit, ``mapping.py``, ``params.py`` and ``environment.py``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

from compilegate.localcloud.emulator.clients import role_credentials
from compilegate.localcloud.emulator.sagemaker.job import TrainingJob
from compilegate.localcloud.emulator.sagemaker.layout import HOSTS, Layout, resource_config
from compilegate.localcloud.emulator.settings import RUN_VARIABLE

DEFAULT_PROGRAM = "train.py"
JOB_VARIABLE = "COMPILEGATE_LOCAL_JOB"
# Every job has one core, alone on the machine or not: a short block and a full run of the
# same arm must take the same time per step.
THREADS = 1
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


def decoded_hyperparameters(request: dict[str, Any]) -> dict[str, Any]:
    """Each value as JSON where it is JSON, else as it stands."""
    decoded: dict[str, Any] = {}
    for name, value in (request.get("HyperParameters") or {}).items():
        try:
            decoded[name] = json.loads(value)
        except ValueError:
            decoded[name] = value
    return decoded


def user_hyperparameters(decoded: dict[str, Any]) -> dict[str, Any]:
    """Those meant for the script; names that begin with ``sagemaker_`` are the platform's."""
    return {name: value for name, value in decoded.items() if not name.startswith("sagemaker_")}


def command_arguments(hyperparameters: dict[str, Any]) -> list[str]:
    """``--name value`` for each, sorted by name; a mapping becomes ``k=v,k=v``."""
    arguments: list[str] = []
    for name, value in sorted(hyperparameters.items()):
        arguments.append(f"--{name}" if len(name) > 1 else f"-{name}")
        if isinstance(value, dict):
            arguments.append(",".join(f"{key}={item}" for key, item in sorted(value.items())))
        else:
            arguments.append(str(value))
    return arguments


def build_environment(
    job: TrainingJob, layout: Layout, channels: dict[str, Path]
) -> dict[str, str]:
    """Everything the process sees, the request's own Environment last."""
    decoded = decoded_hyperparameters(job.request)
    hyperparameters = user_hyperparameters(decoded)
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    variables |= _platform_variables(job, layout)
    variables |= _script_mode_variables(job, layout, decoded, hyperparameters, channels)
    variables |= {"OMP_NUM_THREADS": str(THREADS), "MKL_NUM_THREADS": str(THREADS)}
    given = job.request.get("Environment") or {}
    return variables | {name: layout.mapped(value) for name, value in given.items()}


def _platform_variables(job: TrainingJob, layout: Layout) -> dict[str, str]:
    return {
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        "AWS_REGION": job.region,
        "AWS_DEFAULT_REGION": job.region,
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        **role_credentials(job.request["RoleArn"], job.region),
        "NO_PROXY": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(layout.code),
        "TMPDIR": str(layout.temporary),
        RUN_VARIABLE: os.environ.get(RUN_VARIABLE, ""),
        JOB_VARIABLE: job.name,
    }


def _script_mode_variables(
    job: TrainingJob,
    layout: Layout,
    decoded: dict[str, Any],
    hyperparameters: dict[str, Any],
    channels: dict[str, Path],
) -> dict[str, str]:
    program = str(decoded.get("sagemaker_program", DEFAULT_PROGRAM))
    resources = resource_config(job.request)
    values: dict[str, Any] = {
        "model_dir": str(layout.model),
        "output_dir": str(layout.output),
        "output_data_dir": str(layout.output_data),
        "output_intermediate_dir": str(layout.intermediate),
        "output_failure": str(layout.failure),
        "input_dir": str(layout.root / "input"),
        "input_config_dir": str(layout.config),
        "module_dir": str(layout.code),
        "module_name": PurePosixPath(program).with_suffix("").as_posix().replace("/", "."),
        "user_entry_point": program,
        "user_args": command_arguments(hyperparameters),
        "hps": hyperparameters,
        "channels": sorted(channels),
        "hosts": HOSTS,
        "current_host": HOSTS[0],
        "current_instance_type": resources["current_instance_type"],
        "current_instance_group": resources["current_group_name"],
        "network_interface_name": resources["network_interface_name"],
        "resource_config": resources,
        "num_gpus": 0,
        "num_neurons": 0,
        "num_cpus": THREADS,
        "job_name": job.name,
        "log_level": decoded.get("sagemaker_container_log_level", 20),
    }
    values |= {f"channel_{name}": str(path) for name, path in channels.items()}
    values |= {f"hp_{name}": value for name, value in hyperparameters.items()}
    return {f"SM_{name.upper()}": _as_text(value) for name, value in values.items()}


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
