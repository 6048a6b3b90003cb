"""Shapes that change from step to step: each new one is compiled again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.loaders import divides, training_loaders
from compilegate_doctor.rule import EVERY, MANAGED_PITFALLS, RECOMPILATION, Rule
from compilegate_doctor.script import Script
from compilegate_doctor.steps import NO_GRADIENT
from compilegate_doctor.syntax import (
    argument,
    called,
    calls_in,
    dotted,
    keyword,
    last_name,
    receiver,
    texts,
)
from compilegate_doctor.trainers import trainer_settings
from compilegate_doctor.words import HELD_OUT, TRAINING

TOKENIZER = re.compile(r"tokeniz|processor|feature_extractor|data_collator", re.IGNORECASE)
COLLATORS = ("DataCollatorWithPadding", "DataCollatorForTokenClassification",
             "DataCollatorForSeq2Seq", "DataCollatorForMultipleChoice")  # fmt: skip
FIXED = re.compile("max_len|pad_to")
SIZES = ("len", "size")
PADDING_METHODS = ("pad", "batch_encode_plus", "encode_plus", "apply_chat_template")
PREPARING = re.compile(r"train|token|preprocess|prepare|collat|encode|batch|load|map|main|data",
                       re.IGNORECASE)  # fmt: skip


def dynamic_padding(script: Script) -> Iterator[Hit]:
    """Tokenizers and collators that pad each batch to its own longest sample."""
    collates = [loader.keywords.get("collate_fn") for loader in training_loaders(script)]
    collates += [keyword(call, "data_collator") for call in script.calls]
    padded = False
    for collate in collates:
        how = "" if collate is None else _pads(script, collate)
        if collate is not None and how:
            padded = True
            yield Hit(collate, f"{how} pads each batch to its own longest sample")
    fixed = False
    for call in script.calls:
        padding = keyword(call, "padding")
        if padding is None or not _tokenizes(call):
            continue
        value = script.options.value(padding)
        fixed = fixed or value == "max_length"
        # What a collate function pads, the tokenizer had sample by sample.
        longest = (value is True or value == "longest") and not padded
        kept = _one_by_one(script, call) or _multiple(script, call)
        if longest and not kept and _for_training(script, call):
            yield Hit(padding, f"padding={value!r} pads each batch to its own longest sample")
    if not fixed:
        yield from _collators(script)
    for settings in trainer_settings(script):
        if settings.get("group_by_length", False) is True:
            place = settings.place("group_by_length")
            yield Hit(place, "group_by_length gives batches of many different lengths")
    yield from _padded_batches(script)


def _pads(script: Script, collate: ast.expr) -> str:
    """What in a function that puts samples together pads them to the longest of the batch."""
    made = script.options.assigned(collate.id) if isinstance(collate, ast.Name) else None
    names = {*texts(collate), *(texts(made) if made is not None else ())}
    classes = (one for one in script.nodes if isinstance(one, ast.ClassDef) and one.name in names)
    own = {one for holder in classes for one in holder.body}
    bodies = [one for one in script.functions if one.name in names or one in own]
    calls = [call for body in (collate, *bodies) for call in calls_in(body)]
    if any(FIXED.search(item.arg or "") for call in calls for item in call.keywords):
        return ""
    for call in calls:
        if called(call) == "pad_sequence":
            return "pad_sequence"
        sizes = {called(one) for item in call.args for one in ast.walk(item)
                 if isinstance(one, ast.Call)}  # fmt: skip
        if called(call) == "max" and receiver(call) is None and not sizes.isdisjoint(SIZES):
            return "max(…) of the samples' lengths"
    return ""


def _collators(script: Script) -> Iterator[Hit]:
    for call in script.calls:
        if called(call) in COLLATORS:
            value = script.options.value(argument(call, 1, "padding"))
            stands_in = isinstance(script.parents[call], ast.IfExp)  # what a library does without
            if value != "max_length" and not stands_in and not _multiple(script, call):
                yield Hit(call, f"{called(call)} pads each batch to its own longest sample")


def _padded_batches(script: Script) -> Iterator[Hit]:
    if not script.uses("tensorflow"):
        return
    for call in script.calls:
        if called(call) == "padded_batch" and argument(call, 1, "padded_shapes") is None:
            yield Hit(call, "padded_batch without padded_shapes pads to the batch's longest")


def _tokenizes(call: ast.Call) -> bool:
    on = receiver(call)
    if called(call) in PADDING_METHODS:
        return on is not None and bool(TOKENIZER.search(last_name(on)))
    alone = "." not in dotted(call.func).removeprefix("self.")
    return alone and bool(TOKENIZER.search(last_name(call.func)))


def _one_by_one(script: Script, call: ast.Call) -> bool:
    """``[tokenizer(text, …) for text in texts]`` has no other sample to pad to."""
    around = script.parents.get(call)
    if not isinstance(around, ast.ListComp) or not call.args:
        return False
    return dotted(call.args[0]) == dotted(around.generators[0].target)


def _for_training(script: Script, call: ast.Call) -> bool:
    """Padding in a forward pass for evaluation or inference does not matter."""
    function = script.function_of(call)
    if function is None:
        return script.is_training
    frozen = not {*texts(function)}.isdisjoint(NO_GRADIENT)
    named = bool(PREPARING.search(function.name)) and not HELD_OUT.search(function.name)
    return named and not frozen


def _multiple(script: Script, call: ast.Call) -> bool:
    """Rounding lengths up leaves few shapes: enough for a compiler that marks them dynamic."""
    multiple = keyword(call, "pad_to_multiple_of")
    value = script.options.value(multiple) if multiple is not None else None
    return isinstance(value, int) and value > 1


def ragged_last_batch(script: Script) -> Iterator[Hit]:
    """Training loaders whose last batch may be smaller."""
    # Opacus replaces a loader by one that draws batches of any size.
    private = any(called(call).startswith("make_private") for call in script.calls)
    for loader in training_loaders(script):
        drop_last = loader.keywords.get("drop_last")
        single = loader.lacks("batch_size") or (
            script.options.value(loader.keywords.get("batch_size")) in (1, None)
        )
        sampler = loader.keywords.get("sampler")
        drawn = isinstance(sampler, ast.Call) and keyword(sampler, "num_samples") is not None
        fixed = "batch_sampler" in loader.keywords or single or drawn or divides(script, loader)
        missing = loader.lacks("drop_last") and not private
        if not fixed and (missing or (drop_last and script.options.value(drop_last) is False)):
            yield _smaller(script, loader.call)
    for settings in trainer_settings(script):
        if settings.get("dataloader_drop_last", False) is False:
            yield Hit(
                settings.place("dataloader_drop_last"),
                "The trainer keeps a smaller last batch in each epoch",
                fix="pass dataloader_drop_last=True",
            )
    yield from _remainders(script)


def _smaller(script: Script, call: ast.Call) -> Hit:
    if script.uses("accelerate"):  # its even_batches is on unless it is turned off
        return Hit(call, "On one GPU the last batch of an epoch can be smaller than the others; "
                   "on several, accelerate fills it up", Severity.NOTE)  # fmt: skip
    return Hit(call, "The last batch of an epoch can be smaller than the others")


def _remainders(script: Script) -> Iterator[Hit]:
    if not script.uses("tensorflow"):
        return
    for call in script.calls:
        if called(call) != "batch" or argument(call, 1, "drop_remainder") is not None:
            continue
        statement = script.statement(call)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        words = [word for target in targets for word in texts(target)]
        if any(TRAINING.search(word) for word in words) and receiver(call) is not None:
            yield Hit(
                call,
                "The last batch of an epoch can be smaller than the others",
                fix="give batch(..., drop_remainder=True)",
            )


RULES = (
    Rule(
        "dynamic-padding", "Padding to the longest sample", Severity.SLOWS, EVERY,
        dynamic_padding,
        "Batches differ in length: a compiler makes a program per shape, or a slower one for all.",
        "pad to a fixed length: padding='max_length' with max_length=…, or pack the texts into "
        "blocks of one length",
        MANAGED_PITFALLS,
    ),
    Rule(
        "ragged-last-batch", "A smaller last batch", Severity.SLOWS, EVERY,
        ragged_last_batch,
        "A batch of another size is compiled again in the run; torch.compile then uses programs "
        "for changing sizes.",
        "give the training loader drop_last=True",
        RECOMPILATION,
    ),
)  # fmt: skip
