"""The equivalence check: what each of its parts sees, and that it leaves a run alone."""

import json
import platform

import pytest

from tests.training.jobs import SCRIPTS

pytestmark = pytest.mark.training

CODE = f"""
import json, sys
sys.path.insert(0, {str(SCRIPTS)!r})
import equivalence_beside as beside, equivalence_cases as cases, equivalence_inputs as more
CASES = {{**cases.CASES, **beside.CASES, **more.CASES}}
"""
# Above every sound one, below every fault that is planted.
BOUND = 10.0
PARTS = ["gradients", "buffers", "last_batch", "recompiled", "accumulation", "evaluation"]
FORWARD = {"gradients", "last_batch", "recompiled", "accumulation", "evaluation"}
# By fault of a bf16 job: parts that see it in single precision, and in its own.
FAULTS = {
    "none": (set(), set()),
    "cut": (FORWARD - {"evaluation"}, FORWARD - {"evaluation"}),
    "gelu": (FORWARD, set()),
    "epsilon": (FORWARD, set()),
    "momentum": ({"buffers"}, {"buffers"}),
    "mean": (FORWARD, FORWARD),
    "last": ({"last_batch"}, set()),
    "other": ({"recompiled"}, set()),
    "evaluation": ({"evaluation"}, set()),
}


class Examined(dict):
    """What checks find, each case in a process of its own when it is first asked for."""

    def __init__(self, jobs):
        super().__init__()
        self._jobs = jobs

    def __missing__(self, name):
        made = self._jobs.run_code(CODE + f"print(json.dumps(cases.examined(CASES[{name!r}])))")
        assert made["untouched"]
        return self.setdefault(name, made)


@pytest.fixture(scope="module")
def examined(jobs):
    return Examined(jobs)


def seen(figures, arithmetic="single"):
    """Parts in which more than rounding was seen."""
    of = [one for one in figures["parts"] if one["arithmetic"] == arithmetic]
    return {one["part"] for one in of if one["ratio"] is None or one["ratio"] > BOUND}


def parts_of(figures):
    return sorted(one["part"] for one in figures["parts"])


@pytest.mark.parametrize("name", FAULTS)
def test_each_part_sees_its_own_faults_alone(examined, name):
    single, own = FAULTS[name]
    made = examined[name]

    assert (sorted(PARTS * 2), []) == (parts_of(made), made["unseen"])
    assert (single, own) == (seen(made), seen(made, "own"))


def test_a_job_in_single_precision_is_compared_once(examined):
    made = examined["fp32"]

    assert (sorted(PARTS), []) == (parts_of(made), made["unseen"])
    assert {"single"} == {one["arithmetic"] for one in made["parts"]}
    assert set() == seen(made)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("clearing", {"accumulation"}),
        ("baked", {"gradients"}),
        ("rare", {"gradients"}),
        ("a fault of one batch", {"gradients"}),
        ("a fault behind what a batch keeps", {"gradients"}),
        ("beside masks", set()),
        ("momentum beside masks", {"buffers"}),
        ("evaluation beside masks", {"evaluation"}),
        ("a generator of its own", set()),
        ("a fault beside a generator", {"gradients"}),
        ("a hook", set()),
        ("a price", set()),
        ("a wrong price", {"gradients"}),
        ("a teacher's output", set()),
        ("a wrong output of a teacher", {"buffers"}),
        ("a bank by sample", set()),
        ("a wrong bank", {"buffers"}),
        ("teacher", set()),
        ("fast teacher", {"buffers"}),
        ("optimizer", set()),
        ("rate of the optimizer", {"optimizer"}),
        ("dropout", set()),
        ("lost", {"randomness"}),
        ("inductor", set()),
        *((name, {"randomness"}) for name in (
            "of_another_rate", "of_another_scale", "standing_still", "of_another_backward",
        )),
    ],
)  # fmt: skip
def test_what_shows_after_a_step_or_at_random_is_seen(examined, name, parts):
    assert (parts, []) == (seen(examined[name]), examined[name]["unseen"])


def test_a_frozen_weight_that_a_step_changes_is_compared(examined):
    (made,) = [one for one in examined["teacher"]["parts"] if one["part"] == "buffers"]

    assert (1, "mean") == (made["compared"], made["where"])


@pytest.mark.parametrize(
    ("fault", "parts", "unseen"),
    [
        ("of the loss", {"gradients"}, []),
        ("of logits", {"gradients"}, []),
        ("beside masked logits", {"gradients"}, []),
        ("none", set(), []),
        ("none, masked", set(), []),
        ("none, masked by infinity", set(), []),
        ("none, not finite", set(), [("gradients", "eager_not_finite", 0.5)]),
        ("of integers", set(), [("gradients", "integers_differ", 0.5)]),
    ],
)
def test_the_loss_and_the_outputs_beside_it_are_both_seen(examined, fault, parts, unseen):
    made = examined[f"fault {fault}"]

    assert all(parts == seen(made, one["arithmetic"]) for one in made["parts"])
    assert unseen == [(one["part"], one["code"], one["share"]) for one in made["unseen"]]


def test_a_document_says_in_what_it_was_made(examined):
    made = examined["cut"]
    gradients = made["parts"][0]

    device = f"cpu {platform.machine()}"
    assert {"device": device, "precision": "bf16"}.items() <= made["class"].items()
    assert (1, "first", 12) == (made["schema"], made["weights"], len(made["check"]))
    assert ("own", 10) == (gradients["arithmetic"], gradients["compared"])
    assert gradients["where"] in ("body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias")
    assert all(error > 0.1 for error in gradients["total"]["compiled"])
    assert all(0 < error < 0.1 for error in gradients["total"]["eager"])
    assert made["seconds"] > 0


@pytest.fixture(scope="module")
def inputs(jobs):
    return jobs.run_code(
        CODE
        + """
every = {**cases.INPUTS, **more.INPUTS}
made = {name: cases.examined(make) for name, (make, _) in every.items()}
made["no time"] = cases.examined(cases.whole, limit_seconds=0.0)
print(json.dumps([{name: code for name, (_, code) in every.items()}, made]))
"""
    )


def test_a_bad_input_is_named_and_changes_nothing(inputs):
    expected, made = inputs
    found = {name: made[name]["unseen"][0]["code"] if made[name]["unseen"] else None
             for name in expected}  # fmt: skip

    assert expected == found
    assert [] == [name for name, one in made.items() if not one["untouched"]]
    assert [] == [name for name in made if seen(made[name])]
    compared = [name for name, code in expected.items() if code is None]
    assert all("gradients" in [one["part"] for one in made[name]["parts"]] for name in compared)


def test_weights_of_64_bits_are_a_class_of_their_own(inputs):
    made = inputs[1]["double precision"]

    assert "fp64" == made["class"]["precision"]
    assert ["gradients"] * 2 == parts_of(made)


def test_what_the_time_left_out_is_said_of_what_applies_alone(inputs):
    made = inputs[1]["no time"]

    assert [] == made["parts"]
    assert {"time_exceeded"} == {one["code"] for one in made["unseen"]}
    assert {*PARTS, "randomness"} - {"buffers"} == {one["part"] for one in made["unseen"]}


@pytest.fixture(scope="module")
def formatted(jobs):
    return jobs.run_code(CODE + "print(json.dumps(more.formatted()))")


def test_a_format_of_products_chosen_in_any_way_is_seen_and_restored(formatted):
    own = {name for name, one in formatted.items() if "own" in
           {part["arithmetic"] for part in one["parts"]}}  # fmt: skip

    assert {"matmul of the processor", "convolutions of the processor", "all"} == own
    assert all(one["untouched"] and not one["unseen"] for one in formatted.values())
    assert all(set() == seen(one) | seen(one, "own") for one in formatted.values())


@pytest.fixture(scope="module")
def otherwise(jobs):
    """Models that are too large, or too slow, for a reference of the whole in double precision."""
    return jobs.run_code(
        CODE
        + """
made = {"fp32": cases.large(precision="fp32"), "parts": cases.large(of_a_block=1200)}
for name in ("none", "gelu", "cut"):
    made.update({f"large {name}": cases.large(name), f"slow {name}": cases.slow(name)})
print(json.dumps(made))
"""
    )


@pytest.mark.parametrize("how", ["large", "slow"])
def test_without_a_reference_of_the_whole_faults_are_seen_in_parts_of_it(otherwise, how):
    none, gelu, cut = (otherwise[f"{how} {name}"] for name in ("none", "gelu", "cut"))

    assert all(one["untouched"] for one in otherwise.values())
    assert (set(), set()) == (seen(none), seen(none, "own"))
    assert ("gradients" in seen(gelu), set()) == (True, seen(gelu, "own"))
    assert "gradients" in seen(cut) & seen(cut, "own")


def test_what_is_in_no_block_is_a_share_of_the_weights(otherwise):
    whole, fp32, parts = (otherwise[name]["unseen"] for name in ("large none", "fp32", "parts"))

    # Code between blocks counts where the whole was not compared in any precision.
    assert [("gradients", "single", "too_large", share) for share in (0.0, 0.1, 0.0)] == [
        (*(one[key] for key in ("part", "arithmetic", "code")), round(one["share"], 3))
        for (one,) in (whole, fp32, parts)
    ]
    assert ["gradients"] == parts_of(otherwise["fp32"])


@pytest.fixture(scope="module")
def of_two(jobs):
    done = jobs.run_two(SCRIPTS / "equivalence_of_two.py")
    assert 0 == done.status, done.output
    return json.loads(done.output.splitlines()[-1])


@pytest.mark.parametrize("name", ["sound", "dropout"])
def test_processes_are_examined_alone_and_together(of_two, name):
    parts = {one["part"] for one in of_two[name]["parts"]} - {"randomness"}

    assert ({"gradients", "buffers", "reduction"}, []) == (parts, of_two[name]["unseen"])
    assert set() == seen(of_two[name])


def test_what_another_process_does_wrong_is_seen_together(of_two):
    assert {"reduction"} == seen(of_two["one is wrong"])


def test_processes_begin_together_or_not_at_all(of_two):
    unseen = of_two["one has no batches"]["unseen"]

    assert [("reduction", "failed")] == [(one["part"], one["code"]) for one in unseen]
    assert all(one["together"] and one["untouched"] for one in of_two.values())
