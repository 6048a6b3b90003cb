"""Walks a state machine's definition: states, edges, and what can be reached."""

import json
import re

VARIABLE = re.compile(r"\$([a-z_]+)\b(?!\()")


def build(definition):
    """Every state by name, those inside Maps included; fails on a name used twice."""
    states = {}
    for machine in machines(definition):
        for name, state in machine["States"].items():
            assert name not in states, f"{name} is used twice"
            states[name] = state
    return states


def machines(definition):
    """The definition and, below it, every Map's inner machine."""
    yield definition
    for state in definition["States"].values():
        if "ItemProcessor" in state:
            yield from machines(state["ItemProcessor"])


def leaves(value):
    """Every value of a document that is neither a list nor a mapping."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


def edges(state):
    """Names of the states that may come next, errors included."""
    names = [state.get("Next"), state.get("Default")]
    names += [item["Next"] for item in (*state.get("Choices", ()), *state.get("Catch", ()))]
    return [name for name in names if name]


def called(state):
    """The function that a state invokes."""
    return state["Arguments"]["FunctionName"].rpartition(":")[2]


def reachable(machine, start=None):
    """Names that can be reached from ``start``, or from the machine's beginning."""
    seen, waiting = set(), [start or machine["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += edges(machine["States"][name])
    return seen


def catchers(state):
    """Error name → next state, in the order in which they are tried."""
    return {
        error: catcher["Next"]
        for catcher in state.get("Catch", ())
        for error in catcher["ErrorEquals"]
    }


def reads(state):
    """Variables that a state's expressions read; ``$states`` and functions are not variables."""
    text = json.dumps({key: part for key, part in state.items() if key != "ItemProcessor"})
    expressions = re.findall(r"{%(.*?)%}", text)
    names = {name for expression in expressions for name in VARIABLE.findall(expression)}
    return names - {"states"}


def assigned_on_every_path(machine, target, variable):
    """Whether no path reaches ``target`` without passing an assignment of ``variable``."""
    seen, waiting = set(), [machine["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name == target:
            return False
        if name in seen:
            continue
        seen.add(name)
        state = machine["States"][name]
        if variable not in state.get("Assign", ()):
            waiting += [edge for edge in edges(state) if edge not in catchers(state).values()]
        waiting += [
            catcher["Next"]
            for catcher in state.get("Catch", ())
            if variable not in catcher.get("Assign", ())
        ]
    return True
