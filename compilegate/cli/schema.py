"""``compilegate schema``: what a workload file may hold."""

from __future__ import annotations

from compilegate.cli.common.output import emit_json
from compilegate.cli.common.session import JsonOption
from compilegate.domain.workload.schema import workload_schema


def schema(*, as_json: JsonOption = False) -> None:  # noqa: ARG001 - a schema is JSON anyway
    """Print the JSON Schema of workload files.

    \b
    compilegate schema > workload.schema.json

    For editors: one with the YAML language server reads it where a file begins with
    # yaml-language-server: $schema=workload.schema.json
    `compilegate check` knows more: folders, data, and what keys mean together.
    """
    emit_json(workload_schema())
