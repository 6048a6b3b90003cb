"""What a rule is, and the pages that rules refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compilegate_doctor.finding import COMPILERS, MANAGED_COMPILER, TORCH_COMPILE, Hit, Severity
from compilegate_doctor.script import Script

# Also compilers that the doctor has no rules of their own for.
EVERY = COMPILERS
TORCH_ONLY = (TORCH_COMPILE,)
MANAGED_ONLY = (MANAGED_COMPILER,)

TORCH = "https://docs.pytorch.org/docs/stable/compile"
GRAPH_BREAKS = f"{TORCH}/programming_model.common_graph_breaks.html"
RECOMPILATION = f"{TORCH}/programming_model.recompilation.html"
WHERE_TO_COMPILE = f"{TORCH}/programming_model.where_to_apply_compile.html"
COMPILE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
AWS = "https://docs.aws.amazon.com/sagemaker/latest/dg/training-compiler"
MANAGED_PITFALLS = f"{AWS}-tips-pitfalls.html"
MANAGED_PYTORCH = f"{AWS}-pytorch-models.html"
MANAGED_TENSORFLOW = f"{AWS}-tensorflow-models.html"


@dataclass(frozen=True)
class Rule:
    """One thing that the doctor reports.

    ``compilers`` are those it matters to, ``why`` explains it to someone who never met it,
    ``link`` is the page that says so.
    """

    id: str
    title: str
    severity: Severity
    compilers: tuple[str, ...]
    check: Callable[[Script], Iterable[Hit]]
    why: str
    fix: str
    link: str

    def matters_to(self, compilers: Iterable[str]) -> bool:
        """Whether it is about one of them, or about every compiler whatever its name."""
        return self.compilers == EVERY or not set(self.compilers).isdisjoint(compilers)
