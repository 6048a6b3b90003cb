"""Which metrics of its held-out data a script reports, and how a printed one is found again."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate_doctor.source import Source
from compilegate_doctor.syntax import called, constant, dotted, keyword, last_name, receiver
from compilegate_doctor.words import HELD_OUT

# Words by which scripts name a measure, with the name of the metric; larger is better for RISING.
RISING = {
    "accuracy": "accuracy", "acc": "accuracy", "acc1": "accuracy", "top1": "accuracy",
    "top-1": "accuracy", "acc@1": "accuracy", "f1": "f1", "auc": "auc", "auroc": "auc",
    "bleu": "bleu", "rouge": "rouge", "miou": "iou", "iou": "iou", "map": "map", "dice": "dice",
    "score": "score", "psnr": "psnr", "ssim": "ssim", "r2": "r2",
}  # fmt: skip
FALLING = {
    "loss": "loss", "perplexity": "perplexity", "ppl": "perplexity", "error": "error",
    "err": "error", "rmse": "rmse", "mse": "mse", "mae": "mae", "fid": "fid", "wer": "wer",
    "bpb": "bpb", "nll": "nll",
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9@]*(?:-1)?")
_TRAINING = re.compile(r"(^|[^a-z])(train|training|step|lr|running)([^a-z]|$)", re.IGNORECASE)
_PERCENT = re.compile(r"%[-+0-9.]*[a-z]")
_PLACE = re.compile(rf"{_PERCENT.pattern}|\{{[^{{}}]*\}}")
# What a meter calls its mean, as PyTorch's and timm's examples do; beside it is the last batch's.
_AVERAGES = ("avg", "average", "mean", "global_avg")
_AVERAGED = re.compile(rf"\.({'|'.join(_AVERAGES)})\b")
# What stands beside the bars of tqdm.
BARS = ("set_description", "set_description_str", "set_postfix_str")
# ``progress_bar`` is that of many copies of kuangliu/pytorch-cifar: it writes its second argument.
PRINTERS = (
    "print", "info", "write", "log", "warning", "debug", "progress_bar", "success",
    "echo", "secho", *BARS,
)  # fmt: skip
# A number as Python writes it.
NUMBER = r"([-+]?[0-9][0-9.eE+-]*)"
# The same among other text, where it stands for itself.
_SEEN_NUMBER = re.compile(r"(?<![\w.])[-+]?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?(?![\w])", re.I)
MOST_LABEL = 80
# So many words before a number say which it is.
MOST_WORDS = 6


@dataclass(frozen=True)
class Metric:
    """A metric by the name it is known by; ``pattern`` finds it in what the script prints.

    ``percent``: it is printed as a percentage.
    """

    name: str
    goal: str
    pattern: str | None = None
    percent: bool = False


def logged_metrics(source: Source) -> list[Metric]:
    """What a LightningModule logs of held-out data, by its name or in a step of validation."""
    names: list[str] = []
    for call in source.calls:
        logged: list[str] = []
        if called(call) == "log" and call.args and receiver(call) is not None:
            logged += _texts(source, call.args[0])
        elif called(call) == "log_dict" and call.args and isinstance(call.args[0], ast.Dict):
            logged += [name for key in call.args[0].keys if key for name in _texts(source, key)]
        function = source.function_of(call)
        validates = function is not None and bool(HELD_OUT.search(function.name))
        names += [name for name in logged if validates or HELD_OUT.search(name)]
    return _best_first([Metric(name, goal) for name in names if (goal := _goal(name))])


def _texts(source: Source, node: ast.expr) -> Iterator[str]:
    """What a text can be: ``f"{stage}_loss"`` with every ``stage`` of its function's calls."""
    if isinstance(constant(node), str):
        yield str(constant(node))
    function = source.function_of(node)
    if not isinstance(node, ast.JoinedStr) or function is None:
        return
    parts = [constant(part) or dotted(getattr(part, "value", None)) for part in node.values]
    names = [item.arg for item in function.args.args]
    for call in source.calls if all(parts) else ():
        if called(call) == function.name:
            bound = names[1:] if names[:1] == ["self"] and receiver(call) is not None else names
            arguments = {**dict(zip(bound, call.args, strict=False)),
                     **{item.arg: item.value for item in call.keywords if item.arg}}  # fmt: skip
            filled = [
                constant(part) or constant(arguments.get(str(name)))
                for part, name in zip(node.values, parts, strict=True)
            ]
            if all(isinstance(part, str) for part in filled):
                yield "".join(map(str, filled))


def trainer_metrics(source: Source) -> list[Metric]:
    """What the ``compute_metrics`` of a Hugging Face Trainer returns, and its evaluation's loss.

    First the metric by which the Trainer picks its best model.
    """
    passed = {last_name(value) for value in _values_of(source, "compute_metrics")}
    metrics = []
    for function in source.functions:
        if function.name in passed or "metric" in function.name or "accuracy" in function.name:
            for node in ast.walk(function):
                for key in node.keys if isinstance(node, ast.Dict) else ():
                    name = constant(key)
                    if isinstance(name, str) and (goal := _goal(name)):
                        metrics.append(Metric(f"eval_{name}", goal))
    by_name: dict[str, Metric] = {}
    others = [*_best_first(metrics), Metric("eval_loss", "minimize")]
    for metric in (*_of_best_model(source), *others):
        by_name.setdefault(metric.name, metric)
    return list(by_name.values())


def _of_best_model(source: Source) -> Iterator[Metric]:
    """The metric of ``metric_for_best_model``, better in the direction that the script says.

    Where it says none, of a measure that is not known a larger one is better, as for the Trainer.
    """
    names = map(source.options.value, _values_of(source, "metric_for_best_model"))
    name = next((one for one in names if isinstance(one, str) and one), None)
    if name is None:
        return
    says = map(source.options.value, _values_of(source, "greater_is_better"))
    rises = next((one for one in says if isinstance(one, bool)), None)
    said = None if rises is None else ("maximize" if rises else "minimize")
    yield Metric(f"eval_{name.removeprefix('eval_')}", said or _goal(name) or "maximize")


def _values_of(source: Source, name: str) -> Iterator[ast.expr]:
    """What a setting is given: as a keyword, a field's default or an attribute."""
    for node in source.nodes:
        if isinstance(node, ast.keyword):
            target = node.arg or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = last_name(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        else:
            continue
        value = node.value
        if target == name and value is not None:
            default = keyword(value, "default") if isinstance(value, ast.Call) else None
            yield default or value


def printed_metrics(source: Source) -> list[Metric]:
    """What the script prints of held-out data, the likeliest metric first.

    Where no text says that, it is taken of an accuracy and the like, never of a loss.
    """
    printed = [*_loaded(source), *_summed_up(source), *_printed(source, anywhere=False)]
    certain = _best_first(printed)
    return certain or [one for one in _printed(source, anywhere=True) if one.goal == "maximize"]


def metrics_in_line(line: str) -> list[Metric]:
    """The metrics in a line that a script has printed, those of held-out data first.

    Of a line that does not name held-out data, an accuracy and the like alone.
    """
    template = _SEEN_NUMBER.sub(_HOLE, line)
    certain = _best_first([*_in_template(template, held_out=False)])
    others = _best_first([*_in_template(template, held_out=True)])
    return certain or [one for one in others if one.goal == "maximize"]


def metric_named(name: str) -> Metric | None:
    """A metric that a framework reports under this name, None where no measure is known by it."""
    goal = _goal(name)
    return None if goal is None else Metric(name, goal)


def _loaded(source: Source) -> Iterator[Metric]:
    """The metric of ``evaluate.load("accuracy")`` or of GLUE, as its dictionary is printed."""
    for call in source.calls:
        if source.called(call) == "evaluate.load" and call.args:
            name = str(constant(call.args[0])).replace("glue", "accuracy")
            if name in RISING:
                yield Metric(f"eval_{RISING[name]}", "maximize", f"'{name}': {NUMBER}")


def _summed_up(source: Source) -> Iterator[Metric]:
    """What the meters of pytorch/examples' imagenet print of an evaluation: `` * Acc@1 71.5``."""
    if not any(function.name == "display_summary" for function in source.functions):
        return
    labels = [str(constant(call.args[0])) for call in source.calls
              if called(call) == "AverageMeter" and call.args]  # fmt: skip
    for label in labels:
        if label.lower() in RISING:
            pattern = rf"\* *{re.escape(label)} *{NUMBER}"
            yield Metric(f"eval_{RISING[label.lower()]}", "maximize", pattern, "@" in label)
            return


def _printed(source: Source, *, anywhere: bool) -> Iterator[Metric]:
    for call in source.calls:
        if called(call) not in PRINTERS or (called(call) == "log" and receiver(call) is None):
            continue
        function = source.function_of(call)
        held_out = function is not None and bool(HELD_OUT.search(function.name))
        certain = held_out or (anywhere and called(call) not in BARS)  # most bars are training's
        yield from _in_template("".join(_template(call)), held_out=certain)


# A value that is put in; one that is a mean; one that is passed over for the mean behind it.
_HOLE, _MEAN, _PASSED = "\0", "\1", "\2"
# Around the measure that a value's own name says, before its mark: "Val: {val_acc}".
_NAME = "\3"
_NAMED = re.compile(f"{_NAME}(.*?){_NAME}")
_MEAN_BEHIND = re.compile(rf"{_HOLE}(%? *\( *){_MEAN}")
# What follows the number of held-out examples: "on the 10000 test images: 63 %".
_COUNTED = re.compile(r"\s+(?:\w+\s+){0,2}(?:images|samples|examples|sentences|batches|items)\b")
# A number that says when: "accuracy at epoch 3 of 90: 63 %".
_WHEN = re.compile(
    rf"\b(?:epoch|step|iteration|iter|batch|round|fold)\W*(?:{_HOLE}\s*(?:of|/)\s*)?$",
    re.IGNORECASE,
)
# A number that is not the metric.
_OTHER = "[-+0-9.eE]+"


def _template(call: ast.Call) -> Iterator[str]:
    """What a call prints, with a mark for each value that is put in."""
    for index, item in enumerate(call.args):
        yield " " if index else ""
        text = str(constant(item) or "")
        if index == 0 and called(call) != "print" and ("%" in text or _PLACE.search(text)):
            yield _emptied(text, call.args[1:])
            return  # what follows fills it in
        yield _filled(item)


def _filled(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_filled(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _mark(node.value) + _sign(node.format_spec)
    if isinstance(node, ast.Constant):
        text = str(node.value)
        return _emptied(text, []) if _PERCENT.search(text) else text
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _filled(node.left) + _filled(node.right)
    filled: ast.expr | None = None
    values: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        filled = node.left
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    elif isinstance(node, ast.Call) and called(node) == "format":
        filled, values = receiver(node), node.args
    template = constant(filled)
    if isinstance(template, str):
        return _emptied(template, values)
    return _mark(node)


def _sign(form: ast.expr | None) -> str:
    """The sign that the format of a percentage, ``.2%``, writes behind the number."""
    last = form.values[-1] if isinstance(form, ast.JoinedStr) and form.values else None
    return "%" if str(constant(last)).endswith("%") else ""


def _mark(value: ast.expr) -> str:
    """The mark of a value, after the measure that its name says."""
    name = last_name(value)
    measure = _measure(name.lower().split("_"))
    said = f"{_NAME}{measure}{_NAME}" if measure else ""
    return _MEAN if name in _AVERAGES else said + _HOLE


def _emptied(text: str, values: Sequence[ast.expr]) -> str:
    """A template with marks for its places, which ``values`` fill in order or by name."""
    in_order = iter(values)

    def mark(place: re.Match[str]) -> str:
        value = next(in_order, None)
        sign = "%" if place.group().endswith("%}") else ""  # "{:.2%}" writes it itself
        if _AVERAGED.search(place.group()):
            return _MEAN + sign
        return (_HOLE if value is None else _mark(value)) + sign

    return _PLACE.sub(mark, text).replace("%%", "%")


def _in_template(template: str, *, held_out: bool) -> Iterator[Metric]:
    """Every value of a template that a label before it names."""
    template = _MEAN_BEHIND.sub(rf"{_PASSED}\g<1>{_HOLE}", template).replace(_MEAN, _HOLE)
    parts = template.split(_HOLE)
    said, counted, begun = held_out, "", ""
    for named, behind in itertools.pairwise(parts):
        before, after = _NAMED.sub("", named), _NAMED.sub("", behind)
        label = (begun + before).rpartition("\n")[2][-MOST_LABEL:]
        other = _COUNTED.match(after) or _WHEN.search(label)
        begun = label + _HOLE if other and _measure(_words_of(label)) else ""
        if begun:
            continue
        said = said or bool(HELD_OUT.search(label))
        if counted and not _WORD.search(label):  # 98/100 (98 %): the share is the metric
            words, place = _words_of(counted), f"{_place(counted)} *{_OTHER} *{_place(label)}"
        else:
            words, place, counted = _words_of(label), _place(label), ""
        name = _measure(words) or (_NAMED.findall(named) or [None])[-1]
        if name is None or not said or _TRAINING.search(label.rpartition(",")[2]):
            continue
        if after.startswith("/"):
            counted = counted or label
            continue
        if counted and not label.strip("/ "):  # of how many
            counted += f"{_HOLE}/"
            continue
        kind = RISING.get(name) or FALLING[name]
        goal = "maximize" if name in RISING else "minimize"
        # Top-k accuracy, "Acc@1", is printed as a percentage throughout.
        percent = after.lstrip(")] ").startswith("%") or "@" in name
        yield Metric(f"eval_{kind}", goal, f"{place} *{NUMBER}", percent)


def _measure(words: Sequence[str]) -> str | None:
    """The last word that names a measure."""
    return next((word for word in reversed(words) if word in RISING or word in FALLING), None)


def _words_of(label: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(label)]


def _place(label: str) -> str:
    """A regular expression for the last few words of a label, whatever blanks there are."""
    words = re.sub(f"[{_HOLE}{_PASSED}]", f" {_OTHER} ", label).split()[-MOST_WORDS:]
    while len(words) > 1 and not _WORD.search(words[0]):
        words.pop(0)
    return " *".join(word if word == _OTHER else re.escape(word) for word in words)


def _goal(name: str) -> str | None:
    words = re.split(r"[^A-Za-z0-9@]+", name.lower())
    for word in reversed(words):
        if word in RISING:
            return "maximize"
        if word in FALLING:
            return "minimize"
    return None


def _best_first(metrics: list[Metric]) -> list[Metric]:
    """Each name once, the last way in which it is reported; quality before losses."""
    by_name: dict[str, Any] = {metric.name: metric for metric in metrics}
    return sorted(by_name.values(), key=lambda metric: metric.goal != "maximize")
