"""What do the evaluation examples add to the spread, and what does training itself?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.judging.evaluation_advice import Evaluation, evaluation_of
from compilegate.domain.judging.evaluation_noise import Split
from compilegate.explain.item import Item, Reporter, Section

WHY_NOT = {
    "too_few_runs": "Too few runs recorded their outcomes, or too few runs show the spread.",
    "sets_vary": "The examples change from run to run, so their part of the spread is unknown.",
    "other_metric": "The metric is not the mean of the recorded outcomes.",
}


def evaluation_items(name: str, evaluation: Evaluation | None, unit: str) -> Iterator[Item]:
    """The split of one candidate's spread; nothing where no run recorded outcomes."""
    item = Reporter(Section.QUALITY, name)
    if evaluation is None:
        return
    split, today = evaluation.split, evaluation.today
    if split is None or today is None:
        finding = str(evaluation.finding)
        yield item("spread of the evaluation", None, WHY_NOT[finding], of=evaluation_of)
        return
    seen = {"s": split.sd, "tau^2": split.tau_squared, "N": split.examples}
    yield item(
        "spread of the evaluation", split.evaluation_sd,
        "What the choice of the evaluation examples adds to the spread from run to run.",
        unit=unit, formula="tau / sqrt(N)",
        inputs={"tau^2": split.tau_squared, "N": split.examples},
        of="judging.evaluation_noise.Split.evaluation_sd",
    )  # fmt: skip
    yield item(
        "spread of training", split.training_sd,
        "What is left on an endless set of examples.",
        symbol="sigma_D", unit=unit, formula="sqrt(max(0, N/(N-1) (s^2 - tau^2/N)))", inputs=seen,
        of="judging.evaluation_noise.Split.training_sd",
    )  # fmt: skip
    yield item(
        "spread of training to reckon with", split.expected_training_sd,
        "Few runs measure s; half of the spreads that would explain them are larger than this.",
        unit=unit, formula="the same at the median of the true s^2 >= tau^2/N",
        inputs={**seen, "df": split.df},
        of="judging.evaluation_noise.Split.expected_training_sd",
    )  # fmt: skip
    yield item(
        "runs on today's examples", today.runs,
        "Of each arm, with a chance of 80%" + ("." if today.runs else "; more than 500."),
        unit="runs", inputs={"spread": today.sd, "examples": split.examples},
        of="judging.power.runs_for_one_look",
    )  # fmt: skip
    for larger in evaluation.larger:
        yield item(
            "runs on more examples", larger.runs,
            "The same on a larger set, without past runs, which were scored on today's.",
            unit="runs", formula="with sqrt(sigma_D^2 + tau^2/N')",
            inputs={"examples": larger.examples, "spread": larger.sd}, of=Split.at,
        )  # fmt: skip
