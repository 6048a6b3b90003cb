"""What runs in every training step: loops, the functions they call, without what is rare."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property

from compilegate_doctor.options import Guards
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import (
    LOOPS,
    SCOPES,
    Function,
    Loop,
    called,
    calls_in,
    dotted,
    in_scope,
    last_name,
    receiver,
    texts,
)
from compilegate_doctor.words import HELD_OUT, OPTIMIZER, OPTIMIZER_CLASS

STEP_FUNCTIONS = ("train_step", "training_step", "train_batch", "run_batch", "optimize_step")
UPDATES = ("backward", "optimizer_step", "apply_gradients", "train_on_batch", "minimize")
STEPS = re.compile(r"step($|_and_)")  # step_and_update_lr() of a wrapper
NO_GRADIENT = ("no_grad", "inference_mode")
EXITS = (ast.Break, ast.Raise, ast.Return)


class Steps:
    """The training loops of a script and what each of their steps does."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.guards = Guards(source.options)
        self._by_name: dict[str, list[Function]] = {}
        for function in source.functions:
            self._by_name.setdefault(function.name, []).append(function)
        self._stepping = self._step_functions() if self._trains else set()

    @cached_property
    def loops(self) -> list[Loop]:
        """Loops whose body makes a training step."""
        if not self._trains:
            return []
        return [
            node for node in self._source.nodes
            if isinstance(node, LOOPS) and self._makes_a_step(node.body)
            and not _over_optimizers(node)
        ]  # fmt: skip

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every piece of code that runs in every step, conditions included, in order."""
        nodes = dict.fromkeys(self._every_step())
        return sorted(
            nodes,
            key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)),
        )

    @cached_property
    def calls(self) -> list[ast.Call]:
        """The calls that every step makes."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    def updates(self, call: ast.Call) -> bool:
        """Whether a call computes gradients or changes the weights."""
        name, on = called(call), receiver(call)
        if name.endswith("scaler"):  # one that scales, steps and clips: scaler(loss, optimizer)
            return any(OPTIMIZER.search(last_name(item)) for item in call.args)
        if on is None:
            return False
        if name == "gradient":
            return "tape" in last_name(on)
        return name in UPDATES or (STEPS.match(name) is not None and self._is_stepped(on))

    def _is_stepped(self, on: ast.expr) -> bool:
        """Whether what has a step is an optimizer, or scales gradients for one."""
        if "sched" in last_name(on).lower():
            return False
        words = list(texts(on))
        stepped = dotted(on) in self._optimizers or any(map(OPTIMIZER.search, words))
        return stepped or any(
            word.lower().endswith("scaler") for word in (*words[:1], last_name(on))
        )

    def moves_weights(self, loop: Loop) -> bool:
        """Whether a loop itself steps the optimizer, not only gathers gradients."""
        return any(
            isinstance(node, ast.Call) and self.updates(node) and called(node) != "backward"
            for statement in loop.body for node in in_scope(statement, without=LOOPS)
        )  # fmt: skip

    def targets(self, call: ast.Call) -> list[Function]:
        """The functions of this file that a call may reach."""
        function = call.func
        if isinstance(function, ast.Name):
            return [item for item in self._by_name.get(function.id, ()) if not self._method(item)]
        if isinstance(function, ast.Attribute) and last_name(function.value) in ("self", "cls"):
            return [item for item in self._by_name.get(function.attr, ()) if self._method(item)]
        return []

    def is_evaluation(self, function: Function) -> bool:
        """Whether a function looks at a model without training it."""
        if any(self._without_gradient(item) for item in function.decorator_list):
            return True
        return any(
            called(call) == "eval" and not call.args and receiver(call) is not None
            for call in calls_in(function)
        ) and not any(self.updates(call) for call in calls_in(function))

    @cached_property
    def _optimizers(self) -> set[str]:
        """What PyTorch's optimizers are assigned to, whatever its name."""
        return {
            dotted(target) for node in self._source.nodes
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
            and OPTIMIZER_CLASS.match(self._source.called(node.value))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        } - {""}  # fmt: skip

    @cached_property
    def _trains(self) -> bool:
        """Gradients alone are not training: tests of gradients have loops too."""
        names = {called(call) for call in self._source.calls if self.updates(call)}
        managed = self._source.uses("accelerate", "deepspeed", "lightning", "pytorch_lightning")
        return bool(names - {"backward", "gradient"}) or (bool(names) and managed)

    def _method(self, function: Function) -> bool:
        return isinstance(self._source.parents.get(function), ast.ClassDef)

    def _step_functions(self) -> set[ast.AST]:
        """Functions that make one step, not a loop of them; those that call such ones too."""
        stepping: set[ast.AST] = set()
        for _ in range(4):
            more = {
                function for function in self._source.functions
                if function not in stepping and self._makes_a_step(function.body, stepping)
            }  # fmt: skip
            if not more:
                break
            stepping |= more
        return stepping

    def _makes_a_step(self, body: Sequence[ast.stmt], stepping: set[ast.AST] | None = None) -> bool:
        stepping = self._stepping if stepping is None else stepping
        for statement in body:
            if isinstance(statement, (*LOOPS, *SCOPES)):
                continue
            for node in in_scope(statement, without=LOOPS):
                if isinstance(node, ast.Call) and (
                    self.updates(node) or any(item in stepping for item in self.targets(node))
                ):
                    return True
        return False

    def _every_step(self) -> Iterator[ast.AST]:
        seen: set[ast.AST] = set()
        todo: deque[Sequence[ast.stmt]] = deque(loop.body for loop in self.loops)
        todo.extend(function.body for function in self._step_like())
        while todo:
            for node in self._block(todo.popleft()):
                yield node
                if not isinstance(node, ast.Call):
                    continue
                for function in (*self.targets(node), *self._closures(node)):
                    if function not in seen and not self.is_evaluation(function):
                        seen.add(function)
                        todo.append(function.body)

    def _closures(self, call: ast.Call) -> Iterator[Function]:
        """Functions that an optimizer calls itself: ``optimizer.step(closure)``."""
        if self.updates(call):
            for item in call.args:
                yield from self._by_name.get(last_name(item), ())

    def _step_like(self) -> Iterator[Function]:
        """What a library's own loop calls in every step."""
        for function in self._source.functions:
            holder = self._source.parents.get(function)
            bases = holder.bases if isinstance(holder, ast.ClassDef) else []
            names = [last_name(base) for base in bases]
            lightning = any(name.endswith("LightningModule") for name in names)
            trainer = any(name.endswith("Trainer") for name in names)
            own = function.name in STEP_FUNCTIONS and function in self._stepping
            inherited = (lightning or trainer) and function.name == "training_step"
            if own or inherited or (trainer and function.name == "compute_loss"):
                yield function

    def _block(self, statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
        for statement in statements:
            others = [item for item in statements if item is not statement]
            if isinstance(statement, ast.If):
                yield from self._branch(statement, alone=not self._makes_a_step(others))
            else:
                yield from self._statement(statement)
            if isinstance(statement, ast.If) and self._leaves_usually(statement, statements[-1]):
                return

    def _leaves_usually(self, branch: ast.If, end: ast.stmt) -> bool:
        """Whether most steps end here: ``step % 10``, ``if not self.saves: return``, no error."""
        last, test = branch.body[-1], branch.test
        if not isinstance(last, ast.Continue | ast.Return):
            return False
        off = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        switch = off and isinstance(last, ast.Return) and self.guards.decided(test) is not False
        return switch or isinstance(end, ast.Raise) or self.guards.skips_most(test)

    def _statement(self, node: ast.stmt) -> Iterator[ast.AST]:
        if isinstance(node, SCOPES):
            return
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                yield from self._expression(item.context_expr)
            if not self._looks_only(node):
                yield from self._block(node.body)
        elif isinstance(node, LOOPS):
            yield from self._inner_loop(node)
        elif isinstance(node, ast.Try):
            for block in (node.body, node.orelse, node.finalbody):
                yield from self._block(block)
        else:
            yield node
            for child in ast.iter_child_nodes(node):
                yield from self._expression(child)

    def _branch(self, node: ast.If, *, alone: bool) -> Iterator[ast.AST]:
        """What a branch does in every step; a rare one is the step where there is no other."""
        yield node
        yield from self._expression(node.test)
        decided = self.guards.decided(node.test)
        rare = self.guards.now_and_then(node.test) or isinstance(node.body[-1], EXITS)
        trains = self._makes_a_step(node.body)
        sure = trains or self.guards.usual(node.test)
        if decided is not False and sure and (not rare or (alone and trains)):
            yield from self._block(node.body)
        if decided is not True:
            yield from self._block(node.orelse)

    def _inner_loop(self, node: Loop) -> Iterator[ast.AST]:
        over = node.test if isinstance(node, ast.While) else node.iter
        yield from self._expression(over)
        held_out = any(HELD_OUT.search(word) for word in texts(over))
        if not held_out:
            yield from self._block(node.body)

    def _looks_only(self, node: ast.With | ast.AsyncWith) -> bool:
        """Whether a block evaluates in the middle of training; updating an average does not."""
        quiet = any(self._without_gradient(item.context_expr) for item in node.items)
        return quiet and any(isinstance(inner, LOOPS) for inner in in_scope(node))

    @staticmethod
    def _without_gradient(node: ast.expr) -> bool:
        return last_name(node.func if isinstance(node, ast.Call) else node) in NO_GRADIENT

    def _expression(self, node: ast.AST) -> Iterator[ast.AST]:
        stack = [node]
        while stack:
            inner = stack.pop()
            if isinstance(inner, SCOPES):
                continue
            yield inner
            if isinstance(inner, ast.IfExp) and self.guards.now_and_then(inner.test):
                stack.append(inner.orelse)
            else:
                stack.extend(ast.iter_child_nodes(inner))


def _over_optimizers(loop: Loop) -> bool:
    """``for optimizer in optimizers: optimizer.step()`` is one step, not many."""
    target = None if isinstance(loop, ast.While) else loop.target
    return target is not None and any(map(OPTIMIZER.search, texts(target)))
