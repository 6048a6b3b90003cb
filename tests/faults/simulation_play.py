"""Plays a schedule: executions of the real state machines, people and clocks, faults within all.

Every state that is entered and every call, before and after it is made, is a moment. The acts and
faults that a schedule puts there happen there: what happens within something else happens whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from botocore.exceptions import ClientError, ReadTimeoutError

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError
from compilegate_operating.drainage import end_drain
from tests.faults.machine import Execution, refusal
from tests.faults.rows import CLEAN_UP, ERRORS
from tests.faults.simulation_people import COMMANDS, deployment
from tests.faults.simulation_schedule import FAULTS, Act, Schedule
from tests.faults.simulation_world import Cloud
from tests.faults.world import Calls, Dead, Document, watched

HOUR = 3600
CLIENT_SECONDS, FUNCTION_SECONDS = 100, 540
CLOCKS = (-HOUR, HOUR, 24 * HOUR)
# What AWS answers the machine where it does not start a function.
BUSY = ("TooManyRequestsException", "Rate exceeded", 429)
LOST = ("ServiceException", "internal error", 500)
OWN_CALLS = ("s3.get_object", "sns.publish", "sagemaker.create_training_job", "lambda.invoke")
TRIES, CANARY_RUNS = 3, 12
# What ends a command or a function: its own errors, those of services, its death.
ENDINGS = (Exception, Dead)


@dataclass
class Frame:
    """The act that is under way: what is still to happen within it, how many moments it had."""

    nodes: list[Act]
    moments: int = 0
    pending: list[Act] = field(default_factory=list)
    outage: tuple[str, int] = ("", 0)

    def due(self) -> list[Act]:
        """What happens at this moment."""
        number, self.moments = self.moments, self.moments + 1
        due = [one for one in self.nodes if one.at <= number]
        self.nodes = [one for one in self.nodes if one.at > number]
        return due


class Player:
    """``said`` is what commands answered people, ``happened`` counts acts and faults."""

    def __init__(self, workload: Document, schedule: Schedule) -> None:
        self.cloud = Cloud(workload, schedule)
        self.schedule = schedule
        self.frames = [Frame([])]
        self.running: list[Execution] = []
        self.given: dict[str, Document] = {}
        self.late: list[Callable[[], None]] = []
        self.said: list[str] = []
        self.happened: Counter[str] = Counter()
        self.count = 0
        self.names = list(self.cloud.documents)

    def play(self) -> Cloud:
        """Everything in its order; the cloud is then as the last act left it."""
        random.seed(self.schedule.seed)  # the machines wait a while before they try again
        for act in self.schedule.acts:
            late, self.late = self.late, []
            self.act(act)
            for event in late:
                event()
            self.cloud.passes(HOUR)
        for event in self.late:
            event()
        end_drain(deployment(self.cloud, self.cloud.services), "human:ana")
        return self.cloud

    def act(self, act: Act) -> None:
        """One act, with what happens within it."""
        self.happened[act.do] += 1
        name = self.names[act.of % len(self.names)]
        own: Callable[[Act, str], None] | None = getattr(self, f"_{act.do}", None)
        self.frames.append(Frame(list(act.within)))
        try:
            if own is not None:
                own(act, name)
            else:
                self._command(act.do, name)
        finally:
            self.frames.pop()

    # Moments

    def moment(self, call: str = "", when: str = "") -> None:
        """May raise what a service or the function's end raises, at a ``call`` only."""
        frame = self.frames[-1]
        for node in frame.due():
            if node.do not in FAULTS or node.do == "stop":
                self.act(node)
            elif node.do == "clock":
                self.happened["clock"] += 1
                self.cloud.passes(CLOCKS[int(node.how or 0)])
            else:
                frame.pending.append(node)
        if call:
            self._outage(frame, call, when)
            self._pending(frame, call, when)

    def _outage(self, frame: Frame, call: str, when: str) -> None:
        port, left = frame.outage
        if left and when == "before" and call.startswith(port):
            frame.outage = port, left - 1
            raise refusal("InternalError", "We encountered an internal error.", call, 500)

    def _pending(self, frame: Frame, call: str, when: str) -> None:
        for node in frame.pending:
            if when != "after" and node.do in ("answer_lost", "answer_late"):
                continue
            if when != "before" and node.do in ("refused", "outage"):
                continue
            frame.pending.remove(node)
            self.happened[node.do] += 1
            self._fails(node, frame, call)

    def _fails(self, node: Act, frame: Frame, call: str) -> None:
        number = int(node.how or 0)
        if node.do == "answer_late":
            self.cloud.passes(CLIENT_SECONDS)
            raise ReadTimeoutError(endpoint_url="https://data.s3.us-east-1.amazonaws.com/")
        if node.do in ("dies", "times_out"):
            self.cloud.passes(FUNCTION_SECONDS if node.do == "times_out" else 0)
            raise Dead
        if node.do == "outage":
            frame.outage = call.partition(".")[0] + ".", 3 + 6 * number
        code, message, status = ERRORS[number]
        raise refusal(code, message, "AnyCall", status)

    def calls(self) -> Calls:
        """The calls of a function or a command, each a moment."""
        return Calls(lambda name, _number, when: self.moment(name, when))

    def _meets(self, _execution: Execution, what: str, when: str) -> None:
        call = what.rpartition(" ")[2]
        self.moment(*((call, when) if "." in call else ()))

    def _refuses(self, execution: Execution, api: str, request: Document) -> Exception | None:
        if api not in OWN_CALLS:
            return None
        answers = (BUSY, LOST) if api == "lambda.invoke" else (ERRORS[0], ERRORS[1])
        try:
            self.moment(api, "before")
        except ENDINGS:
            return refusal(*answers[0][:2], api, answers[0][2])
        pending = self.frames[-1].pending
        lost = next((node for node in pending if node.do == "answer_lost"), None)
        if lost is None:
            return None
        pending.remove(lost)
        self.happened["answer_lost"] += 1
        execution.refuse = None
        try:
            execution.call(api, request)
        finally:
            execution.refuse = self._refusing(execution)
        if execution.machine == naming.TRAIN and "TrainingJobName" in request:
            self.cloud.unaccounted.add(request["TrainingJobName"])
        return refusal(*answers[1][:2], api, answers[1][2])

    def _refusing(self, execution: Execution) -> Callable[[str, Document], Exception | None]:
        return lambda api, request: self._refuses(execution, api, request)

    # Executions

    def _run(self, execution: Execution, act: Act) -> None:
        execution.hook, execution.refuse = self._meets, self._refusing(execution)
        self.running.append(execution)
        try:
            execution.run()
        finally:
            self.running.remove(execution)
        if execution.status != "SUCCEEDED":
            self._event(execution, act)

    def _event(self, execution: Execution, act: Act) -> None:
        """The event of a bad end arrives once, not at all, twice or late."""
        if act.event == "late":
            self.late.append(lambda: self._clean_up(execution, act))
            return
        for _ in range({"lost": 0, "twice": 2}.get(act.event, 1)):
            self._clean_up(execution, act)

    def _clean_up(self, execution: Execution, act: Act) -> None:
        step, event = CLEAN_UP[execution.machine], {"detail": execution.detail}
        self._function(step, event, Frame(list(act.clean_up)))

    def _function(self, step: str, event: Document, frame: Frame) -> None:
        """An event that Lambda tries three times."""
        self.frames.append(frame)
        try:
            for _ in range(TRIES):
                try:
                    self.cloud.step(step, event, self.calls())
                except ENDINGS:
                    continue
                return
        finally:
            self.frames.pop()

    def _trial(self, act: Act, name: str) -> None:
        self.count += 1
        trial = f"{self.count:08d}"
        given = {"workload": name, "trial": trial, "spec_key": f"workloads/{name}/specs/1.json"}
        self.given[name] = given
        execution = Execution(naming.EVALUATE, f"{name}-{trial}", given, self.cloud)
        execution.waiting = lambda one, token: self._waits(one, token, act, name)
        self._run(execution, act)

    def _waits(self, execution: Execution, token: str, act: Act, name: str) -> None:
        if execution.state != "CanaryRuns":
            if act.how in ("agree", "refuse"):
                self._command("approve" if act.how == "agree" else "reject", name)
            return
        for _ in range(CANARY_RUNS):
            waits = token not in self.cloud.services.tokens.answers
            if not waits or execution.status != "RUNNING":
                return
            self.cloud.passes(20 * HOUR)
            self._train(Act("train"), name)

    def _same_again(self, act: Act, name: str) -> None:
        """Somebody starts the last trial's input once more, under another name."""
        self.count += 1
        if name in self.given:
            execution = Execution(
                naming.EVALUATE, f"{name}-copy{self.count:04d}", self.given[name], self.cloud
            )
            self._run(execution, act)

    def _train(self, act: Act, name: str) -> None:
        self.count += 1
        execution = Execution(
            naming.TRAIN, f"{name}-{self.count:08d}", {"workload": name}, self.cloud
        )
        self._run(execution, act)

    def _stop(self, act: Act, name: str) -> None:
        """StopExecution; of ``twice`` the event comes while the stopped function goes on."""
        running = [one for one in self.running if one.status == "RUNNING"]
        if running:
            own = [one for one in running if one.given.get("workload") == name]
            execution = (own or running)[-1]
            execution.stop()
            if act.event == "twice":
                self._clean_up(execution, act)

    # By the clock, by hand

    def _sweep(self, act: Act, _name: str) -> None:
        self._function("sweep", {}, Frame(list(act.within)))

    def _digest(self, act: Act, _name: str) -> None:
        self._function("weekly_digest", {}, Frame(list(act.within)))

    def _unlock(self, act: Act, name: str) -> None:
        holder = self.cloud.services.locks.holder(name)
        for one in self.running:
            if one.arn == holder:
                one.stop()
        self._command("unlock", name)

    def _command(self, command: str, name: str) -> None:
        """A command that dies is run again."""
        for _ in range(TRIES):
            services, _topic = watched(self.cloud, self.calls())
            try:
                COMMANDS[command](self.cloud, name, services)
            except CompilegateError as error:
                self.said.append(str(error))
            except (ClientError, ReadTimeoutError, Dead):
                continue
            return
