"""How errors are compared: what is rounding, what is a fault, and what has no relative error."""

import pytest

pytestmark = pytest.mark.training

CODE = """
import json, math
import torch
from compilegate_runtime.equivalence import batches, compare, randomness, reference, unseen

torch.manual_seed(0)
TRUE = [torch.randn(100, dtype=torch.float64), torch.randn(50, dtype=torch.float64)]

def off(*errors):
    "Steps, each with its relative errors of both tensors."
    return [[true + error * true.norm() * (torch.arange(len(true)) == 3)
             for true, error in zip(TRUE, step, strict=True)] for step in errors]

def ratio(compiled, *eager, epsilon=1e-7, truth=None):
    truth = truth or [TRUE] * len(compiled)
    return compare.compared(["first", "second"], truth, compiled, eager, epsilon)

def again(compiled, eager):
    "The ratio where the first of six steps runs three times."
    measured = compare.measured([TRUE] * 8, compiled, [eager])
    assert compare.is_in_doubt(*measured, 1e-7, [0], 12.0) == (compiled[0] is not eager[0])
    return compare.figures(["first", "second"], *measured, 1e-7, [[0, 6, 7], [1]])

STILL = off(*[(1e-6, 1e-6)] * 4)
jump, jumps, always = (
    off(*[(1e-6, 1e-3)] * count, *[(1e-6, 1e-6)] * (4 - count)) for count in (1, 2, 4))
lost = off(*[(1e-6, 1e-6)] * 4)
lost[2][1][0] = float("nan")
none = [[TRUE[0], torch.full((50,), 1e-9, dtype=torch.float64)]] * 4
table = torch.sparse_coo_tensor([[2, 5]], torch.ones(2, 3), (8, 3))
moved = torch.sparse_coo_tensor([[2, 6]], torch.ones(2, 3), (8, 3))
rows = [compare.sampled(torch, one) for one in (table, table, moved)]
wide = {width: torch.arange(2**20 // width * width).reshape(-1, width) for width in (1024, 1071)}
class Tape:
    def check(self): pass

recording, exact = reference.modes(torch, Tape(), torch.float64)
drawn, layer = [], torch.nn.Sequential(torch.nn.Linear(9, 9), torch.nn.Dropout(0.5))
given = torch.ones(40, 9)
with recording(drawn):
    plain = layer(given)
layer.double()
with reference.computing(torch, exact(drawn), torch.float64):
    replayed = layer(given.double()).float() * 1
    default = torch.zeros(1).dtype == torch.float64
masks = randomness.Masks(torch, torch.nn.Sequential())
normal = torch.randn(3, 32).tolist()
print(json.dumps({
    "same": ratio(STILL, STILL), "one jump": ratio(jump, STILL), "jumps": ratio(jumps, STILL),
    "eager jumps": ratio(jumps, jumps), "better eager": ratio(jumps, STILL, jumps),
    "stays": again([always[0], *STILL, STILL[0], *always[:2]], STILL * 2),
    "moves": again(jump + STILL, STILL * 2),
    "eager's stays": again(always * 2, always * 2),
    "lost": ratio(lost, STILL), "exact": ratio(STILL, [TRUE] * 4),
    "no gradient": ratio([[TRUE[0], None]] * 4, STILL),
    "rounding itself": ratio([[TRUE[0], -none[0][1]]] * 4, [none[0]] * 4, truth=none),
    "rows": [compare.errors([rows[0]], [one])[1] for one in rows[1:]],
    "columns": [len({int(one) % width for one in compare.sampled(torch, values)})
                for width, values in wide.items()],
    "sampled": [len(compare.sampled(torch, one)) for one in wide.values()],
    "replayed": float((plain - replayed).abs().max()), "default": default,
    "restored": torch.zeros(1).dtype == torch.float32, "drawn": len(drawn),
    "turned": batches.turned(torch, {"a": torch.arange(3)})["a"].tolist(),
    "not turned": batches.turned(torch, [torch.zeros(3), torch.zeros(2)]) is None,
    "cut": len(batches.cut(torch, [torch.zeros(9)])[0]),
    "losses": [randomness.of_losses(torch, normal[0], one, 1e-7)[0] for one in (
        normal[1], [value + 3 for value in normal[1]], [value * 9 for value in normal[1]],
        [1.0] * 32, sorted(normal[1]))],
    "steady": randomness.of_losses(torch, [1.0] * 32, [1.0] * 32, 1e-7)[0],
    "slopes": [randomness.of_slopes([1e-4], one)[0] for one in ([1e-4, 1.0], [0.1, 0.2])],
    "codes": [unseen.reason_of(one).code for one in (
        RuntimeError("CUDA out of memory"), ValueError("x"), unseen.Unseen("no_loss"))],
}, default=str))
"""


@pytest.fixture(scope="module")
def made(jobs):
    return jobs.run_code(CODE)


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("same", 1.0),
        ("one jump", 1.0),  # over the kink of a ReLU
        ("jumps", 1e3),
        ("stays", 1e3),  # each time that the step is repeated
        ("moves", 1.0),
        ("eager's stays", 1.0),
        ("eager jumps", 1.0),
        ("better eager", 1.0),  # the worst way of eager code is the yardstick
        ("lost", None),  # what is not a number is no rounding, in a single step too
        ("exact", 10.0),  # by epsilon, not by what is exact by chance
        ("no gradient", 1e6),
    ],
)
def test_the_ratio_is_of_errors_that_are_not_chance(made, name, ratio):
    assert (None if ratio is None else pytest.approx(ratio, rel=1e-3)) == made[name]["ratio"]


def test_the_worst_tensor_is_named_with_its_errors(made):
    worst = made["jumps"]

    assert ("second", 2) == (worst["where"], worst["compared"])
    assert [1e-3, 1e-6] == pytest.approx([worst["error"], worst["eager_error"]])
    assert worst["step"] in (1, 2)
    assert {"compiled", "eager", "epsilon"} == worst["total"].keys()


def test_a_gradient_that_is_rounding_has_an_error_of_the_whole_gradient(made):
    """Twice as large and with another sign, but next to nothing beside the others."""
    assert made["rounding itself"]["ratio"] < 5


def test_a_wrong_row_and_every_column_are_looked_at(made):
    same, moved = made["rows"]

    assert 0 == same < 0.05 < moved
    # A stride of 17, the next odd one, divides 1071 = 63 * 17.
    assert [1024, 1071] == made["columns"]
    assert all(2**15 < count <= 2**16 for count in made["sampled"])


def test_the_reference_draws_what_eager_code_drew(made):
    assert (1, True, True) == (made["drawn"], made["default"], made["restored"])
    assert made["replayed"] < 1e-6


def test_random_losses_are_compared_by_their_distribution(made):
    same, shifted, wider, still, sorted_ = made["losses"]

    assert same < 3.5
    assert min(shifted, wider, sorted_) > 4.5
    assert (float("inf"), 0.0) == (still, made["steady"])
    assert made["slopes"][0] < 1
    assert made["slopes"][1] > 100


def test_batches_are_turned_and_cut_where_they_have_samples(made):
    assert ([2, 1, 0], True, 2) == (made["turned"], made["not turned"], made["cut"])


def test_an_exception_has_a_code(made):
    assert ["out_of_memory", "failed", "no_loss"] == made["codes"]
