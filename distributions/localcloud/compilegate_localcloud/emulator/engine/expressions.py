"""JSONata in a state machine, evaluated in Python.

moto needs a Java machine for JSONata and pastes values into the expression's text. Here
``jsonata-python`` evaluates it, with the functions of Step Functions that ministack adds.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Mapping
from typing import Any

import jsonata
from ministack.services import stepfunctions
from moto.stepfunctions.parser import api
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails

from compilegate_localcloud.emulator.replacements import replace

_event_details: Any = EventDetails  # a TypedDict whose keys are all optional in truth
_STRINGS = "moto.stepfunctions.parser.asl.component.common.string.string_expression"
_NULL = jsonata.utils.Utils.NULL_VALUE
# Step Functions ends an evaluation after a second.
_MOST_MILLISECONDS = 1000
# Up to here a floating-point number holds every whole number.
_EXACT = 2**53
# Expressions that are kept as they were read; the app has some three hundred.
_KEPT_EXPRESSIONS = 4096


def _make_parser() -> Any:
    """Reads each expression once, for all threads: evaluating changes nothing of what was read.

    The library makes a parser for every thread, of which each state of an execution has its own.
    """
    parser, lock = jsonata.parser.Parser(), threading.Lock()
    read = functools.lru_cache(_KEPT_EXPRESSIONS)(parser.parse)

    def parse(*arguments: Any) -> Any:
        with lock:
            return read(*arguments)

    parser.parse = parse
    return parser


_parser = _make_parser()


class _Encoder(jsonata.functions.Functions.Encoder):  # type: ignore[misc]  # no types
    """``$string`` of an object leaves letters as they are; the library escapes all but ASCII."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "ensure_ascii": False})


jsonata.functions.Functions.Encoder = _Encoder


class EvaluationError(Exception):
    """The expression failed or gave no value; Step Functions says States.QueryEvaluationError."""


def install() -> None:
    """Evaluate every expression here."""

    def evaluate_body(self: Any, env: Any) -> None:
        variables = {**env.variable_store._outer_scope, **env.variable_store._inner_scope}
        states = _present(env.states._states_data)
        try:
            env.stack.append(evaluate(self.expression, states, variables))
        except EvaluationError as error:
            raise FailureEventException(_query_failure(env, str(error))) from error

    for kind in ("StringJSONata", "StringVariableSample"):
        replace(f"{_STRINGS}.{kind}._eval_body", evaluate_body)


def evaluate(expression: str, states: Mapping[str, Any], variables: Mapping[str, Any]) -> Any:
    """The expression's value, a JSON document; raises EvaluationError.

    ``states`` is ``$states``: ``input``, ``context``, and ``result`` or ``errorOutput`` where the
    state has one. ``variables`` are the variables by name, without the dollar.
    """
    values = {**variables, "states": states}
    # Most expressions use one or two of some dozen variables.
    scope = {name: _as_variable(one) for name, one in values.items() if f"${name}" in expression}
    try:
        value = _run(expression, scope)
        exists = value is not None or _run(f"$exists(({expression}))", scope)
        json.dumps(value)
    except EvaluationError:
        raise
    except Exception as error:  # the library raises whatever it meets
        code = getattr(error, "error", None)
        raise EvaluationError(f"{code}: {error}" if code else str(error)) from error
    if not exists:
        raise EvaluationError(f"the expression gave no value: {expression}")
    return value


def _run(expression: str, scope: Mapping[str, Any]) -> Any:
    jsonata.Jsonata.PARSER.parser = _parser  # this thread's
    prepared = jsonata.Jsonata.jsonata(expression, timeout=_MOST_MILLISECONDS)
    stepfunctions._register_sfn_jsonata_functions(prepared)
    prepared.register_lambda("parse", _parse)
    prepared.register_lambda("eval", _not_available)
    return prepared.evaluate(None, dict(scope))


def _as_variable(value: Any) -> Any:
    """The library takes None for something that does not exist."""
    return _NULL if value is None else _whole_numbers(value)


def _whole_numbers(value: Any) -> Any:
    """2000.0 as 2000: JSON knows one kind of number, and ``$string`` must not tell two apart."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):  # a Mapping is five times as slow to tell
        return {name: _whole_numbers(item) for name, item in value.items()}
    return [_whole_numbers(item) for item in value] if isinstance(value, list) else value


def _parse(text: str) -> Any:
    return _as_variable(json.loads(text))


def _not_available(*_arguments: Any) -> Any:
    raise EvaluationError("$eval is not available in Step Functions; use $parse")


def _present(states: Mapping[str, Any]) -> dict[str, Any]:
    """``$states`` without the result and the error that the interpreter keeps as None."""
    absent = [key for key in ("result", "errorOutput") if states.get(key) is None]
    return {key: value for key, value in states.items() if key not in absent}


def _query_failure(env: Any, cause: str) -> Any:
    name = StatesErrorName(typ=StatesErrorNameType.StatesQueryEvaluationError)
    details = api.EvaluationFailedEventDetails(error=name.error_name, cause=cause)
    return FailureEvent(
        env=env,
        error_name=name,
        event_type=api.HistoryEventType.EvaluationFailed,
        event_details=_event_details(evaluationFailedEventDetails=details),
    )
