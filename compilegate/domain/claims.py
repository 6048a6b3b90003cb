"""What a decision's figures allow to be said: one rule for every screen, page and message.

- "faster" and "slower" only where the interval of the whole job's speed-up excludes equal time
- quality by the reason that decided it, never by the sign of a difference that chance explains
- money only where full runs were timed, no reason says that they do not confirm the short blocks,
  and the whole interval of the saving lies above zero
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, Interval, Verdict
from compilegate.domain.escaping import escape_chat, escape_chat_code, escape_line, escape_mail
from compilegate.domain.outside import plain, visible
from compilegate.domain.workload.model import BASELINE

ON = frozenset({Verdict.PROMOTE, Verdict.PERMANENT})
OFF = frozenset({Verdict.STAY_OFF, Verdict.INELIGIBLE, Verdict.REVERT, Verdict.INVALID})
HELD = frozenset({"quality_held", "weights_identical", "probation_passed"})
# In a probation the runs that checked the alarm decide, not the difference over all of production
# (domain/judging/monitor.py).
CHECKED_WORSE = "quality_regressed"
WORSE = frozenset({"quality_worse", CHECKED_WORSE})
# Whole jobs do not confirm what the short blocks showed.
UNCONFIRMED = frozenset(
    {
        "full_run_disagrees",
        "full_run_implausible",
        "full_run_unmeasured",
        "full_run_unproven",
        "saving_unproven",
    }
)


class SpeedClaim(StrEnum):
    """A whole job's time against the baseline's."""

    FASTER = "faster"
    SLOWER = "slower"
    OPEN = "open"


class QualityClaim(StrEnum):
    """The candidate's quality against the margin."""

    HELD = "held"
    WORSE = "worse"
    OPEN = "open"


class MoneyClaim(StrEnum):
    """What may be said about dollars; ``COSTS`` and what stands before it may name an amount."""

    SAVES = "saves"  # the candidate is on
    IF_ON = "if_on"
    COSTS = "costs"  # the whole interval is a loss
    OFF = "off"  # the candidate stays off, or was turned off
    UNMEASURED = "unmeasured"  # no full run was timed
    UNCONFIRMED = "unconfirmed"

    @property
    def has_amount(self) -> bool:
        """Whether an amount may be named."""
        return self in (MoneyClaim.SAVES, MoneyClaim.IF_ON, MoneyClaim.COSTS)


# Why no amount is named.
NO_AMOUNT = {
    MoneyClaim.OFF: "the candidate is off",
    MoneyClaim.UNMEASURED: "no full run was timed",
    MoneyClaim.UNCONFIRMED: "full runs do not confirm it",
}


# Ends of no interval: they lie neither above nor below anything.
UNKNOWN_ENDS = (math.nan, math.nan)


def speed_claim(interval: Interval | None) -> SpeedClaim:
    """By the interval of the speed-up; open without one."""
    low, high = interval or UNKNOWN_ENDS
    if low > 1:
        return SpeedClaim.FASTER
    return SpeedClaim.SLOWER if high < 1 else SpeedClaim.OPEN


def quality_claim(codes: Collection[str]) -> QualityClaim:
    """By the reasons about the candidate."""
    if WORSE & set(codes):
        return QualityClaim.WORSE
    return QualityClaim.HELD if HELD & set(codes) else QualityClaim.OPEN


def money_claim(
    verdict: str, codes: Collection[str], *, full_runs: float | None, interval: Interval | None
) -> MoneyClaim:
    """``full_runs`` are the candidate's that were timed, ``interval`` is the saving's, in USD."""
    low, high = interval or UNKNOWN_ENDS
    if high < 0:
        return MoneyClaim.COSTS
    if verdict in OFF:
        return MoneyClaim.OFF
    if verdict in ON:
        return MoneyClaim.UNCONFIRMED if low <= 0 else MoneyClaim.SAVES
    if not full_runs:
        return MoneyClaim.UNMEASURED
    confirmed = low > 0 and not UNCONFIRMED & set(codes)
    return MoneyClaim.IF_ON if confirmed else MoneyClaim.UNCONFIRMED


@dataclass(frozen=True)
class Claims:
    """What a decision's figures allow to be said; without a decision nothing.

    ``checked_worse``: the runs that checked an alarm decided on quality; its figures are over all
    of production's runs, and may by themselves show less or nothing.
    """

    speed: SpeedClaim = SpeedClaim.OPEN
    quality: QualityClaim = QualityClaim.OPEN
    money: MoneyClaim = MoneyClaim.OFF
    checked_worse: bool = False

    def to_dict(self) -> dict[str, str]:
        """For programs."""
        return {"speed": self.speed, "quality": self.quality, "money": self.money}


def claims_of(decision: Decision) -> Claims:
    """What may be said of this decision's figures."""
    codes, speed, saving = own_codes(decision), decision.speedup, decision.saving
    return Claims(
        speed=speed_claim(speed.interval if speed else None),
        quality=quality_claim(codes),
        money=money_claim(
            decision.verdict,
            codes,
            full_runs=speed.full_runs if speed else None,
            interval=saving.interval_usd_per_year if saving else None,
        ),
        checked_worse=CHECKED_WORSE in codes,
    )


def own_codes(decision: Decision) -> frozenset[str]:
    """Codes of the reasons, without those about other candidates than the one decided on."""
    own = (None, decision.candidate, BASELINE)
    reasons = (one for one in decision.reasons if decision.candidate is None or one.arm in own)
    return frozenset(reason.code for reason in reasons)


def stated_usd_per_run(decision: Decision) -> float | None:
    """What a run saves, where an amount may be named."""
    saving, stated = decision.saving, claims_of(decision).money.has_amount
    return saving.usd_per_run if saving and stated else None


# Names of verdicts, flag states and reasons of runs, for every screen, report and message.


@dataclass(frozen=True)
class Label:
    """Two or three words; ``tone`` is good, off, open or bad, and decides the colour."""

    text: str
    tone: str


# Verdicts of trials, of probations and of eligibility, and of a trial that failed.
VERDICTS = {
    "promote": Label("Turn it on", "good"),
    "permanent": Label("On permanently", "good"),
    "eligible": Label("Eligible", "good"),
    "stay_off": Label("Leave it off", "off"),
    "ineligible": Label("Not eligible", "off"),
    "inconclusive": Label("Not proven", "open"),
    "continue": Label("In progress", "open"),
    "benchmark": Label("To measure", "open"),
    "revert": Label("Turned back off", "bad"),
    "invalid": Label("No valid comparison", "bad"),
    "failed": Label("Trial failed", "bad"),
}

FLAG_STATES = {
    "off": Label("Off", "off"),
    "probation": Label("On probation", "good"),
    "permanent": Label("On permanently", "good"),
    "reverted": Label("Turned back off", "bad"),
    "stale": Label("Stale", "open"),
}

# Of a promotion whose alarm is being checked; the flag's state stays as it is meanwhile.
ALARM = Label("Alarm being checked", "open")

# Why a production run trains its arm (domain/production/begin.py).
RUN_REASONS = {
    "scheduled": "the flag is off",
    "flag": "the flag is on",
    "refresh": "a current baseline to compare the candidate with",
    "holdback": "a current baseline, drawn at random, to tell what the candidate saves",
    "confirm": "the judge requested it, to check an alarm",
    "canary": "its turn as a canary run of a trial",
    "stale": "the flag is stale",
    "unreadable": "the flag could not be read",
    "malformed": "the flag is malformed",
    "differs": "the flag differs from the ledger",
    "unfit": "the candidate's job cannot be built",
    "rerun": "the candidate failed; rerun on the baseline so that a model exists",
    "fallback": "on a fallback instance type, because the usual one was not available",
}


def verdict_label(verdict: str) -> Label:
    """The label of a verdict; one of a later release stays as it is."""
    return VERDICTS.get(verdict, Label(verdict, "open"))


def run_reason(code: str) -> str:
    """Why a run trains its arm; a later release's code stays as it is."""
    return RUN_REASONS.get(code, code)


# One message to people and programs, in the shape that a topic hands to each kind of subscriber.
#
# Limits are those of SNS ``Publish`` (API reference): a subject of less than 100 characters without
# line breaks, 262,144 bytes for message and attributes together. What a chat channel gets is the
# event schema of custom notifications in Amazon Q Developer in chat applications (administrator
# guide, "Custom notifications", version 1.0): a channel drops any other text.

SUBJECT_MAX = 99
# Far below both services' limits, and what a person reads of a message.
TEXT_MAX = 4000
# A quarter of SNS's limit: the state machine carries the message too, and SNS bills by 64 KB.
BYTES_MAX = 64 * 1024
LOCAL_STAGE = "local"
CUT = "\n(cut here; the rest is in the report)\n"

KINDS = (
    "decision",  # a trial has ended
    "revert",  # the flag went off because production regressed
    "permanent",  # the probation is over
    "stale",  # production is no longer what the decision was made on
    "slower",  # a permanent promotion has lost its speed-up
    "alarm",  # production looks worse; it is being checked
    "waiting",  # a production run waits for capacity or quota
    "failed",  # something did not work
    "approval",  # a promotion waits for a person
    "changed",  # a person has changed the flag
    "digest",  # the week of one owner
)


@dataclass(frozen=True)
class Notification:
    """A message; ``act`` is the suggested next command, ``report`` an S3 URI.

    ``link`` shows the report to who is signed in to the account, None where no console does.

    ``flag`` is ``{"name", "enabled", "state"}``, each None where it is not known. ``figures`` are
    the numbers behind the text, of the kind's own shape. ``workload`` is None for a digest.
    ``more_links`` are the URLs of ours in the text beside ``link``: no other becomes a link.
    """

    kind: str
    stage: str
    subject: str
    text: str
    workload: str | None = None
    owner: str | None = None
    verdict: str | None = None
    decision_id: str | None = None
    flag: Mapping[str, Any] | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    report: str | None = None
    link: str | None = None
    act: str | None = None
    more_links: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse a kind that no subscriber knows, with ValueError; show what would act."""
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is not a kind of notification: use one of {KINDS}")
        for declared in fields(self):
            value = getattr(self, declared.name)
            if isinstance(value, str | Mapping):  # of a job or a person, who may write anything
                seen = visible(value) if isinstance(value, str) else plain(value)
                object.__setattr__(self, declared.name, seen)

    @property
    def line(self) -> str:
        """The subject as SNS takes it."""
        text = escape_line(self.subject)
        flat = " ".join("".join(c if " " <= c <= "~" else " " for c in text).split())
        return flat if len(flat) <= SUBJECT_MAX else f"{flat[: SUBJECT_MAX - 3].rstrip()}..."

    @property
    def message(self) -> str:
        """The text for people, cut to a readable length."""
        return self.text if len(self.text) <= TEXT_MAX else self.text[: TEXT_MAX - len(CUT)] + CUT

    def body(self) -> dict[str, Any]:
        """The same for programs."""
        fields = {name: value for name, value in asdict(self).items() if name != "more_links"}
        return {"schema": 1, **fields, "subject": self.line, "text": self.message}

    @property
    def _own_links(self) -> Sequence[str]:
        return [*([self.link] if self.link else []), *self.more_links]

    def envelope(self) -> str:
        """The topic's message with ``MessageStructure`` json: one text per kind of subscriber.

        Figures that would make it too large are left out, which the message states.
        """
        whole = self._envelope(self.body())
        if len(whole.encode()) <= BYTES_MAX:
            return whole
        return self._envelope({**self.body(), "figures": {}, "figures_left_out": True})

    def attributes(self) -> dict[str, dict[str, str]]:
        """What a subscription's filter policy can ask for; SNS refuses an empty value."""
        return {
            name: {"DataType": "String", "StringValue": value}
            for name in ("kind", "stage", "workload", "owner", "verdict")
            if (value := getattr(self, name))
        }

    def to_answer(self) -> dict[str, Any]:
        """What a function answers to the state machine that publishes it (stacks/states.py)."""
        published = {"message": self.envelope(), "attributes": self.attributes()}
        return {"subject": self.line, "message": self.message, "notification": published}

    def _envelope(self, body: Mapping[str, Any]) -> str:
        texts = {
            "default": _json(body),
            "email": escape_mail(self.message, self._own_links),
            "sms": self.line,
            "https": _json(self._for_chat()),
        }
        return json.dumps(texts, ensure_ascii=False)

    def _for_chat(self) -> dict[str, Any]:
        context = ("workload", "owner", "verdict", "decision_id")
        return {
            "version": "1.0",
            "source": "custom",
            "content": {
                "textType": "client-markdown",
                "title": escape_chat(self.line),
                "description": escape_chat(self.message, self._own_links),
                **({"nextSteps": [escape_chat_code(self.act)]} if self.act else {}),
                "keywords": [escape_chat(w) for w in (self.kind, self.workload, self.owner) if w],
            },
            "metadata": {
                # One thread per workload, or per owner for what is about all of theirs.
                "threadId": f"compilegate-{self.stage}-{self.workload or self.owner or self.kind}",
                "summary": escape_chat(self.line),
                "eventType": self.kind,
                "relatedResources": [self.report] if self.report else [],
                "additionalContext": {
                    name: escape_chat(value) for name in context if (value := getattr(self, name))
                },
            },
        }


def subject_line(stage: str, subject: str) -> str:
    """The subject of every message of a deployment."""
    return f"[compilegate {stage}] {subject}"


def command_at(command: str, stage: str) -> str:
    """A command as typed for one deployment, or for the cloud on this machine."""
    return f"{command} --local" if stage == LOCAL_STAGE else f"{command} --stage {stage}"


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True)


# Verdicts that are a kind of their own; every other one ends a trial.
OWN_KINDS = ("revert", "permanent")


def decision_notification(
    decision: Decision | None,
    *,
    stage: str,
    workload: str,
    flag_enabled: bool | None = None,
    flag_state: str | None = None,
    kind: str | None = None,
    **more: Any,
) -> Notification:
    """The decision in figures beside its text; ``decision`` is None for news without one.

    ``flag_enabled`` and ``flag_state`` are the flag after it, None unknown. ``kind`` defaults to
    the verdict's. ``more`` are the message's other fields, subject and text among them.
    """
    verdict = decision.verdict if decision else None
    return Notification(
        kind=kind or (verdict if verdict in OWN_KINDS else "decision"),
        stage=stage,
        workload=workload,
        verdict=verdict,
        decision_id=decision.decision_id if decision else None,
        flag={
            "name": decision.flag.name if decision and decision.flag else None,
            "action": str(decision.flag_action) if decision else None,
            "enabled": flag_enabled,
            "state": flag_state,
        },
        figures={
            "candidate": decision.candidate if decision else None,
            "reasons": list(decision.codes) if decision else [],
            "speedup": write(decision.speedup) if decision else None,
            "quality": write(decision.quality) if decision else None,
            "saving": write(decision.saving) if decision else None,
            "claims": claims_of(decision).to_dict() if decision else None,
        },
        **more,
    )
