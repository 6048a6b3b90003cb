"""Counts the events that states leave in an execution's history, from their definition.

After the types of HistoryEvent in the API reference of Step Functions: every state is entered and
exited; a task is scheduled, started and succeeds, or is submitted in between where it is waited
for; every failed attempt is scheduled, started and fails; a Map starts and succeeds, and so does
each of its iterations.
"""

WAITED_FOR = (".sync", ".waitForTaskToken")
ATTEMPT = 3


def events(state, *, retries=0):
    """Events of one visit to a state that succeeds in the end."""
    if state["Type"] == "Task":
        return 2 + ATTEMPT + state["Resource"].endswith(WAITED_FOR) + retries * ATTEMPT
    return {"Map": 4, "Fail": 1}.get(state["Type"], 2)


def iteration(states, names):
    """Events of an iteration of a Map that passes these states."""
    return 2 + sum(events(states[name]) for name in names)


def longest_way(machine, start, ends):
    """The most events on any way from ``start`` to one of ``ends``, catchers included, no loops."""

    def walk(name, seen):
        here = events(machine["States"][name])
        if name in ends:
            return here
        ways = [
            walk(after, {*seen, name})
            for after in set(_after(machine["States"][name])) - seen - {name}
        ]
        return here + max(ways, default=0)

    return walk(start, set())


def _after(state):
    found = [state.get("Next"), state.get("Default")]
    found += [item["Next"] for item in (*state.get("Choices", ()), *state.get("Catch", ()))]
    return [name for name in found if name]
