"""The fault that a workload file can ask for, to see production's watch find it.

``training.environment`` carries it to the job (training/families/faults.py); a job without it has
no fault. The workload's history page shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VARIABLE = "INJECTED_FAULT"


def injected_fault(workload: Mapping[str, Any]) -> str | None:
    """The fault that a workload (``Workload.to_dict``) asks for, None for any sound one."""
    environment = (workload.get("training") or {}).get("environment") or {}
    fault = environment.get(VARIABLE)
    return str(fault) if fault else None
