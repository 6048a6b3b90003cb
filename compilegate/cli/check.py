"""``compilegate check``: could a compiler apply and pay at all?"""

from __future__ import annotations

import typer

from compilegate.cli import project
from compilegate.cli.eligibility_screen import show_eligibility
from compilegate.cli.options import JsonOption, WorkloadFiles
from compilegate.cli.outcome import worst_exit_code
from compilegate.cli.output import emit_json, one_or_many, say
from compilegate.cli.trials import read_workloads
from compilegate.domain.eligibility import check_eligibility
from compilegate.usecases.known_facts import known_facts

EXIT_CODES = {"eligible": 0, "ineligible": 10, "benchmark": 11}


def check(files: WorkloadFiles, *, as_json: JsonOption = False) -> None:
    """Say whether a compiler could help, and why.

    Spends nothing and needs no account.

    \b
    compilegate check workloads/bert-docs.yaml
    compilegate check workloads/*.yaml --json

    Exit code 0 eligible, 10 ineligible, 11 benchmark; of several files the highest.
    """
    settings = project.settings()
    documents = [
        check_eligibility(
            file.workload,
            known_facts(file.workload, settings),
            region=settings.region,
        ).to_dict()
        for file in read_workloads(files)
    ]
    if as_json:
        emit_json(one_or_many(documents))
    else:
        for index, document in enumerate(documents):
            if index:
                say()
            show_eligibility(document)
    raise typer.Exit(worst_exit_code([EXIT_CODES[document["verdict"]] for document in documents]))
