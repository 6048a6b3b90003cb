"""The nearest configurations of the managed compiler, as lines for a candidate."""

from __future__ import annotations

from compilegate.domain.eligibility.context import Context
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.facts.versions import parts

# A line to copy, indented, must fit a terminal of 80 columns.
LONGEST = 64


def nearest(context: Context) -> str:
    """The newest row of the same framework, and where that has no twin the newest that has."""
    kin = _kin(context)
    own = [row for row in kin if row.framework == context.framework.name]
    newest = max(own or kin, key=lambda row: parts(row.version))
    if newest.native_image is None:
        return (
            "nearest of the same framework, with no image without the compiler to compare with:"
            f"\n{_lines(newest, context)}\n{paired(context)}"
        )
    return f"nearest configuration for the candidate:\n{_lines(newest, context)}"


def paired(context: Context) -> str:
    """The newest row that has a same-version image without the compiler."""
    twins = [row for row in _kin(context) if row.native_image]
    row = max(twins, key=lambda row: parts(row.version))
    extra = ""
    if context.framework.transformers and row.transformers is None:
        extra = ", transformers by requirements.txt"
    return f"nearest with a same-version baseline{extra}:\n{_lines(row, context)}"


def _kin(context: Context) -> list[CompilerImage]:
    """The rows of the job's kind of framework; PyTorch's where it has none."""
    kin = "tensorflow" if context.framework.name.endswith("tensorflow") else "pytorch"
    return [row for row in context.facts.managed.images if row.framework.endswith(kin)]


def _lines(row: CompilerImage, context: Context) -> str:
    """What a candidate of this row would say, as YAML; short enough for a terminal."""
    named = [f'name: {row.framework}, version: "{row.version}"']
    named += [f'transformers: "{row.transformers}"'] if row.transformers else []
    named.append(f"python: {row.python}")
    several = (context.devices or 1) > 1
    launcher = "pytorchxla" if row.multi_device == "pytorchxla" and several else "none"
    lines = [f"framework: {{{', '.join(named)}}}"]
    if len(lines[0]) > LONGEST:
        lines = [f"framework: {{{named[0]},", f"            {', '.join(named[1:])}}}"]
    if launcher != context.workload.training.distribution:
        lines.append(f"distribution: {launcher}")
    return "\n".join(lines)
