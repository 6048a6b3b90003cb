"""Whether a condition holds in every step, or only now and then."""

from __future__ import annotations

import ast
import re

from compilegate.doctor.options import UNKNOWN, Options
from compilegate.doctor.syntax import last_name, texts

ACCUMULATION = re.compile(r"accum|micro", re.IGNORECASE)
NOW_AND_THEN = re.compile(
    r"(^|_)(log|logs|logging|print|printing|report|save|saving|checkpoint\w*|eval\w*|interval|"
    r"every|freq\w*|debug\w*|verbose|profil\w*|should\w*|time|timer|track\w*|last|first|best|"
    r"done|finished|stop|is\w*nan|is\w*inf|isfinite|tensorboard|wandb|dry_run)(_|$)|steps?$",
    re.IGNORECASE,
)
COUNTER = re.compile(
    r"(^|_)(step|steps|iter|iters|iteration|iterations|idx|index|batch_i|i|j|n|it|count|counter|"
    r"epoch|batch|num|updates?)(_|$)|step$|idx$",
    re.IGNORECASE,
)
DEEP = 6


class Guards:
    """Judges conditions inside a step's code."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def decided(self, test: ast.expr) -> bool | None:
        """True or False where the settings decide it, else None."""
        value = self._options.value(test)
        return None if value is UNKNOWN else bool(value)

    def now_and_then(self, test: ast.expr, depth: int = 0) -> bool:
        """Whether a condition is true in few steps only, as far as its words tell."""
        if depth > DEEP:
            return False
        if isinstance(test, ast.BoolOp):
            rare = [self.now_and_then(item, depth + 1) for item in test.values]
            return any(rare) if isinstance(test.op, ast.And) else all(rare)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            modulo = self._modulo(test.operand)
            return modulo is not None and self._periodic(modulo)
        if isinstance(test, ast.Compare):
            return self._compare(test)
        if isinstance(test, ast.Name):
            only = self._options.assigned(test.id)
            if isinstance(only, ast.BoolOp | ast.Compare | ast.UnaryOp):
                return self.now_and_then(only, depth + 1)
        return self._named(test)

    def skips_most(self, test: ast.expr) -> bool:
        """Whether a condition is true in nearly every step: ``step % 10 != 0``, ``step % 10``."""
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq | ast.Gt):
            modulo = self._modulo(test.left)
        else:
            modulo = self._modulo(test)
        return modulo is not None and self._periodic(modulo)

    def _compare(self, test: ast.Compare) -> bool:
        modulo = self._modulo(test)
        if modulo is not None:
            return self._periodic(modulo) and not isinstance(test.ops[0], ast.NotEq)
        if isinstance(test.ops[0], ast.Is | ast.IsNot | ast.NotEq):
            return False
        words = list(texts(test))
        if any(word in ("time", "perf_counter", "monotonic") for word in words):
            return True
        sides = [test.left, *test.comparators]
        return any(COUNTER.search(last_name(side)) for side in sides if last_name(side))

    def _periodic(self, modulo: ast.BinOp) -> bool:
        factors = [modulo.right]
        if isinstance(modulo.right, ast.BinOp) and isinstance(modulo.right.op, ast.Mult):
            factors = [modulo.right.left, modulo.right.right]
        if all(any(map(ACCUMULATION.search, texts(factor))) for factor in factors):
            return False  # gradient accumulation: that is the step itself
        period = self._options.value(modulo.right)
        return period is UNKNOWN or period not in (1, True)

    @staticmethod
    def _modulo(node: ast.AST) -> ast.BinOp | None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
                return None if isinstance(inner.left, ast.Constant) else inner
        return None

    @staticmethod
    def _named(test: ast.expr) -> bool:
        node = test.func if isinstance(test, ast.Call) else test
        if isinstance(test, ast.Call) and last_name(node) in ("len", "isinstance", "hasattr"):
            return False
        return bool(NOW_AND_THEN.search(last_name(node)))
