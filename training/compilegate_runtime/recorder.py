"""Measures a training run and writes its evidence.

The rules of timing are all here: a step lasts from asking for its batch until the device has
done all of its work; evaluation, summaries and progress lines lie between steps. Nothing in a
step waits for the device: what a step measured is read when the device has passed it.
"""

import collections
import contextlib
import datetime
import math
import time

from compilegate_runtime import (
    compile_bundle,
    compile_cache,
    diagnosis,
    ending,
    environment,
    equivalence,
    kept,
    memory,
    profiled,
)
from compilegate_runtime.equivalence.unseen import Unseen
from compilegate_runtime.errors import DivergedError, TrainingError
from compilegate_runtime.evidence import Evaluations, EvidenceFiles, LossCurve, rounded
from compilegate_runtime.final_weights import fingerprints
from compilegate_runtime.outcomes import MOST_METRICS
from compilegate_runtime.progress import Progress
from compilegate_runtime.ranks import Ranks, account, unfinished
from compilegate_runtime.sampler import Sampler
from compilegate_runtime.signals import stopping_later

WRITE_EVERY_SECONDS = 0.25  # what a killed process loses at most, and the steps in flight
SUMMARY_EVERY_SECONDS = 10.0
# After the first process's own check.
EXAMINED_WITHIN = datetime.timedelta(seconds=ending.HUNG_SECONDS)


class Recorder:
    """One run's clock and evidence; ``run`` holds what identifies the run.

    ``steps`` is how many are planned, None where only the script knows.
    """

    def __init__(self, folder, run, *, steps, compiler, device, clock=time.perf_counter):
        self.steps_planned = steps
        self.steps_done = 0
        self.metrics, self.fingerprint, self._outcomes = {}, {}, {}
        self.initial_loss = None  # of step 1, unless the script measures it before
        self.first_loss_is_initial = True  # not where dropout made it the arm's own
        self.initial_weights = None  # their fingerprint (fingerprint.py)
        self._final_weights = {"final_weights_sha256": None, "final_start_sha256": None}
        self.bad_losses_allowed = 0  # in a row
        self.subject = None  # makes that of the equivalence check, if one is asked for
        self._summary = None  # the last one written
        self._bundle = None  # what came of the bundle that the job's flag names
        self._profiled = None  # steps behind a segment that is complete
        kept.chosen_seconds()  # a wrong one is refused now, not at the end
        self._calm = [0.0, 0]  # seconds and steps in which nothing was compiled
        self._run = dict(run)
        self._clock = clock
        self._files = EvidenceFiles(folder)
        self.folder = self._files.folder
        self._curve, self._ranks, self._evaluations = LossCurve(steps), Ranks(), Evaluations()
        self._progress = Progress(clock, silent=self._ranks.rank > 0)
        self._pending = collections.deque()  # steps that the device has not passed yet
        self._finished, self._reason, self._error = False, None, None
        self._first, self._earlier_seconds = 1, 0.0
        self.resumed = []  # steps at which an earlier process's evidence ended
        self._compilations, self._compiled, self._bad_losses = 0, 0.0, 0
        self._totals = {"samples": 0, "tokens": None, "seconds": 0.0, "data_wait_seconds": 0.0}
        self._written = self._summarised = clock()
        self.use(compiler, device)

    def use(self, compiler, device, sampler=None):
        """Set what is available only after the run's evidence was opened."""
        self._compiler, self._device = compiler, device
        self._timer = device.timer(self._clock)
        self._sampler = sampler or Sampler()
        self._sampler.start()

    def prepare_bundle(self):
        """Let the compiler begin with the bundle that the job's flag names, if it names one."""
        digest = compile_cache.bundle_asked_for()
        if digest is None or not self._compiler.compiles_modules:
            return
        restoring = compile_bundle.Restoring(digest, self._ranks, self._purpose())
        self._bundle = restoring.document
        self._compiler.before_compiling(restoring)

    def _purpose(self):
        return compile_bundle.made_for(self.fingerprint, self._run, self._compiler)

    def identify(self, **facts):
        """Add to what identifies the run, such as its ``full_run_steps``."""
        self._run.update(facts)

    def state(self):
        """What another process needs to continue; every step so far is in the files."""
        self._write_all()
        return {
            "steps": self.steps_done,
            "initial_loss": self.initial_loss,
            "initial_weights": self.initial_weights,
            "totals": dict(self._totals),
            "curve": self._curve.state(),
            "evaluations": self._evaluations.state(),
            "files": self._files.state(),
            "wall_seconds": self._wall_seconds(),
            "resumed": self.resumed,
        }

    def resume(self, state, steps_file):
        """Continue the evidence of an earlier process, before the first step of this one."""
        self._files.resume(state["files"], steps_file)
        self._curve.resume(state["curve"])
        if "evaluations" in state:  # of an earlier release's checkpoint there are none
            self._evaluations.resume(state["evaluations"])
        self._totals.update(state["totals"])
        self.steps_done = state["steps"]
        self.initial_loss, self.initial_weights = state["initial_loss"], state["initial_weights"]
        self._first, self.resumed = self.steps_done + 1, [*state["resumed"], self.steps_done]
        self._earlier_seconds = state["wall_seconds"]

    def begin_after(self, steps):
        """The script continues after so many steps, None if unknown; their evidence is lost."""
        self.steps_done, self._first, self.resumed = steps or 0, (steps or 0) + 1, [steps or 0]
        self._earlier_seconds, self.first_loss_is_initial = None, False
        self.identify(steps_without_evidence=steps)  # so the run's wall time is not known

    def _wall_seconds(self):
        age = environment.process_age_seconds()
        if age is None or self._earlier_seconds is None:
            return None
        return round(age + self._earlier_seconds, 3)

    # ---- in every step --------------------------------------------------------------------

    def steps(self, batches):
        """Yield a batch per step; the step's clock starts when its batch is asked for."""
        source = iter(batches)
        while self.goes_on():
            self.begin_step()
            try:
                batch = next(source)
            except StopIteration:
                return
            self.got_batch()
            yield batch

    def goes_on(self):
        """Whether a step follows: one of those planned, or one that is profiled behind them."""
        if self.steps_done < self.steps_planned:
            return True
        if self._profiled is None:
            traced = hasattr(self._device, "torch") and not self._compiler.on_xla
            if not traced or not profiled.steps_asked_for():
                return False
            try:
                self.finish()
            except TrainingError:
                return False  # raised again where the run is declared complete
            step_seconds = self._step_seconds()
            with contextlib.suppress(Exception):  # the same in all, which compute together
                step_seconds = self._ranks.decided("profiled", self._step_seconds) or step_seconds
            whole = self._run.get("full_run_steps")
            self._profiled = profiled.ProfiledSteps(
                self._device,
                self._keep_profile,
                rank=self._ranks.rank,
                processes=self._ranks.count,
                step_seconds=step_seconds,
                further=None if whole is None else whole - self.steps_done,
            )
        return self._profiled.left > 0

    @contextlib.contextmanager
    def training(self):
        """The script's own work, which fails no run that is complete."""
        try:
            yield
        except Exception as error:
            if self._profiled is None:
                raise
            self._profiled.close(error)
        finally:
            if self._profiled is not None:
                self._profiled.close()

    def _keep_profile(self, document):
        self._summary = {**self._summary, "profile": document}
        with contextlib.suppress(OSError):
            self._files.write_summary(self._summary)

    def begin_step(self):
        """Start the clock of a step."""
        if self._profiled is not None:
            self._profiled.begin_step()
            return
        self._timer.begin()

    def got_batch(self):
        """Everything in the step until now was waiting for data."""
        if self._profiled is None:
            self._timer.got_batch()

    def end_step(self, loss, samples, tokens=None, learning_rate=None, gradient_norm=None):
        """Stop the clock when the device is done, without waiting for it, and record the step.

        ``samples`` and non-padding ``tokens`` are this process's own; the line counts as many for
        each process of the job, the summary has the exact sum. ``loss``, ``tokens`` and
        ``gradient_norm`` may be tensors. Raises DivergedError on a loss that is not finite (steps
        later where the device works behind), NotAppliedError when the first did not compile.
        """
        if self._profiled is not None:
            self._profiled.end_step()
            return
        mark = self._timer.end(loss, gradient_norm, tokens)
        self.steps_done += 1
        step = self.steps_done
        self._pending.append((step, mark, samples, learning_rate, self._compiled_now()))
        now = self._clock()
        if step == self._first:
            self._write_all()
            self._compiler.verify()
            self.write_summary()
        elif step == self.steps_planned:
            self._write_all()
        elif now - self._written >= WRITE_EVERY_SECONDS:
            self._written = now
            self._write_passed()
            if now - self._summarised >= SUMMARY_EVERY_SECONDS:
                self.write_summary()

    def _compiled_now(self):
        """Seconds that the compiler worked in this step, None when it did not."""
        count = self._compiler.compilations()
        if count == self._compilations:
            return None
        before, self._compiled = self._compiled, self._compiler.compile_seconds()
        self._compilations = count
        return self._compiled - before if self._compiled > before else None

    # ---- a few times a second -------------------------------------------------------------

    def _write_all(self):
        """Wait for the device and write every step."""
        self._device.synchronize()
        self._write_passed()

    def _write_passed(self):
        """Write the steps that the device has passed, whole even if the job is being stopped."""
        with stopping_later():
            passed = []
            while self._pending and self._pending[0][1].passed():
                passed.append(self._read(*self._pending.popleft()))
            if passed:
                self._files.append_steps([record for record, _ in passed])
        for record, bad in passed:
            self._follow(record, bad)

    def _read(self, step, mark, samples, learning_rate, compiled):
        seconds, wait, (loss, norm, tokens) = mark.read()
        self._timer.release(mark)
        tokens = None if tokens is None else int(tokens)
        for key, value in (("samples", samples), ("seconds", seconds), ("data_wait_seconds", wait)):
            self._totals[key] += value or 0
        if tokens is not None:
            self._totals["tokens"] = (self._totals["tokens"] or 0) + tokens
        record = {
            "step": step,
            "seconds": rounded(seconds, 6),
            "samples": samples and samples * self._ranks.count,
            "tokens": tokens and tokens * self._ranks.count,
            "loss": rounded(loss, 7),
            "data_wait_seconds": rounded(wait, 4),
        }
        more = {"learning_rate": learning_rate, "gradient_norm": norm}
        record.update({key: rounded(v, 5) for key, v in more.items() if v is not None})
        if compiled is None:
            self._calm[0] += seconds
            self._calm[1] += 1
        else:
            record["compile_seconds"] = round(compiled, 4)
        return record, loss is not None and not math.isfinite(loss)

    def _follow(self, record, bad):
        step, loss = record["step"], record["loss"]
        self._bad_losses = self._bad_losses + 1 if bad else 0
        if self._bad_losses > self.bad_losses_allowed:
            raise DivergedError(f"the loss became nan or infinite at step {step}")
        if loss is not None:
            self._curve.add(step, loss)
            if step == 1 and self.initial_loss is None and self.first_loss_is_initial:
                self.initial_loss = loss
        self._progress.after(record, self.steps_planned)

    def evaluated(self, name, value):
        """Record what the model reached of a metric by now, while it trains or at the end."""
        self._evaluations.add(name, self.steps_done, value, self._wall_seconds())

    # ---- at the end -----------------------------------------------------------------------

    def metric(self, name, value):
        """Record a final metric. Raises DivergedError when it is not a finite number."""
        value = float(value)
        self.metrics[name] = value if math.isfinite(value) else None
        if self.metrics[name] is None:
            raise DivergedError(f"{name} is {value}")
        self.evaluated(name, value)
        self._progress.say(f"compilegate {name}={value:.6f}")
        self.write_summary()

    def outcomes(self, metric, packed):
        """Keep the outcomes per example behind a final metric (outcomes.py), of few metrics."""
        if metric in self._outcomes or len(self._outcomes) < MOST_METRICS:
            self._outcomes[metric] = packed

    def ended_with(self, *models):
        """Record the weights that training has ended with, of a whole run."""
        if self._ranks.rank == 0:
            self._final_weights = fingerprints(models)

    def finish(self):
        """Declare the run complete. Raises when it is not, or its compiler was not applied."""
        if self._finished:
            return
        self._write_all()
        if self._bad_losses:
            raise DivergedError("the loss was nan or infinite at the end")
        if self.steps_done < (self.steps_planned or 1):
            raise TrainingError(
                f"the data ended after {self.steps_done} of {self.steps_planned or 'any'} steps; "
                "where a whole run has fewer steps than a short block, full_run_samples (or "
                "full_run_steps) of the workload's hyperparameters says its length"
            )
        self._compiler.verify()
        self._finished = True
        states = None
        if self._ranks.rank == 0:
            self._ranks.report(**self._own())
            states = self._ranks.all_finished()
            lost = unfinished(states)
            if lost:
                self._finished = False
                raise TrainingError(lost)
        self.write_summary(states)

    def keep_bundle(self):
        """Leave for production what a run that is complete has compiled, if a trial judges it.

        The time is not the run's. Without a bundle nothing is missing but a warm start.
        """
        with contextlib.suppress(Exception), ending.ending_well():
            if self._bundle is not None:
                if self._bundle["state"] == compile_bundle.RESTORED and not self._ranks.rank:
                    compile_bundle.renew(self._bundle["sha256"])
                return
            if not self._compiler.compiles_modules or kept.weights_asked_for() != kept.LAST:
                return
            document = compile_bundle.save(self._ranks, self._purpose())
            if document is not None:
                self._summary = {**self._summary, "compile_bundle": document}
                self._files.write_summary(self._summary)

    def examine(self):
        """Add the equivalence check's figures; neither its time nor its memory is the run's.

        Until every process is through with it the summary says ``examining``: what ends a process
        there, such as a lack of memory, or while it waits for the others, ends a run that is
        complete.
        """
        weights = kept.weights_asked_for()
        if self.subject is None or weights is None:
            return
        limit, more = kept.limit_seconds(self._full_run_seconds(weights)), {}
        with contextlib.suppress(Exception), ending.ending_well():
            self._files.write_summary({**self._summary, "examining": True})
            ending.complete()
            self._ranks.decided("completed", lambda: True)  # the others wait for the first one
            with contextlib.suppress(Unseen), ending.ending_within(limit):
                more["equivalence"] = equivalence.examine(
                    lambda: memory.with_room(self.subject()), weights=weights, limit_seconds=limit
                )
            if any(self._ranks.reports()) and not self._ranks.all_here("examined", EXAMINED_WITHIN):
                more["examining"] = True
            self._files.write_summary({**self._summary, **more})
        if "equivalence" in more:
            more.update(diagnosis.asked_for(self.subject, more["equivalence"], self.folder))
            self._files.write_summary({**self._summary, **more})

    def _full_run_seconds(self, weights):
        """Of this run, or as the steps of a segment let it expect."""
        if weights == kept.LAST:
            return self._wall_seconds() or self._totals["seconds"]
        return self._step_seconds() * (self._run.get("full_run_steps") or 0)

    def _step_seconds(self):
        """Seconds of a step in which nothing was compiled."""
        seconds, steps = self._calm
        return seconds / max(steps, 1)

    def fail(self, reason, error=None):
        """Record why the run ended early, and the class of the exception if one ended it.

        What was measured until then stays; a run that is complete stays so.
        """
        if self._finished:
            return
        self._finished, self._reason, self._error = False, reason, error
        # A device that failed can neither be waited for nor read; a bad loss is known already.
        with contextlib.suppress(RuntimeError, DivergedError):
            self._write_all()
        self.write_summary()

    def write_summary(self, states=None):
        """Bring ``summary.json`` up to date."""
        self._summarised = self._clock()
        own = self._own()
        self._ranks.report(**own)
        peak, compiler = self._device.peak_memory_gib(), self._compiler.evidence()
        bundle = {}
        if self._bundle is not None:
            hits = {name: compiler.get(name) for name in ("cache_hits", "cache_misses")}
            bundle["compile_bundle"] = {**self._bundle, **hits}
        self._summary = {
            "schema": 1,
            **self._run,
            "compiler": compiler,
            **bundle,
            "metrics": self.metrics,
            "outcomes": self._outcomes,
            "loss_curve": self._curve.points,
            "evaluations": self._evaluations.of,
            "peak_memory_gib": round(peak, 3),
            "gpu": self._sampler.figures(),
            "devices": environment.world_size(),
            "fingerprint": self.fingerprint,
            "initial_loss": self.initial_loss,
            "initial_weights_sha256": self.initial_weights,
            **self._final_weights,
            "finished": self._finished,
            "reason": self._reason,
            "error": self._error,
            "steps": self.steps_done,
            "seconds": round(self._totals["seconds"], 4),
            "data_wait_seconds": round(self._totals["data_wait_seconds"], 4),
            "ranks": account(states or self._ranks.reports(), own),
            "wall_seconds": self._wall_seconds(),
            "resumed": self.resumed,
            "node": environment.node(),
        }
        self._files.write_summary(self._summary)

    def _own(self):
        """What this process did, as the first one reads it."""
        return {
            "steps": self.steps_done,
            "samples": self._totals["samples"],
            "tokens": self._totals["tokens"],
            "finished": self._finished,
            "reason": self._reason,
        }

    def close(self):
        """Close the evidence files and stop sampling."""
        self._sampler.close()
        self._files.close()
