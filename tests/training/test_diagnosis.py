"""Where a compiled model's error comes from: planted faults are found, sound models say so."""

import math
import subprocess

import pytest

from tests.training.jobs import PYTHON

pytestmark = pytest.mark.training

CODE = """
import functools, json, pathlib, sys
import torch
from compilegate_runtime import equivalence
from compilegate_runtime.diagnosis import search as diagnosis
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

class Layer(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.norm, self.inner = torch.nn.LayerNorm(16), torch.nn.Linear(16, 16)
        self.activation = activation

    def forward(self, rows):
        return rows + self.activation(self.inner(self.norm(rows)))

class Model(torch.nn.Module):
    def __init__(self, activation=torch.nn.GELU()):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
        self.layers = torch.nn.ModuleList([Layer(activation) for _ in range(2)])

    def forward(self, rows, labels):
        rows = torch.sigmoid(self.first(rows))
        torch._dynamo.graph_break()
        rows = self.layers[1](self.layers[0](rows))
        return torch.nn.functional.cross_entropy(self.last(rows), labels)

class Small(torch.nn.Module):
    # Few kernels to build.
    def __init__(self):
        super().__init__()
        self.inner, self.activation = torch.nn.Linear(8, 4), torch.nn.ReLU()
        self.dropped = torch.nn.Dropout(0.1)

    def forward(self, rows, labels):
        return (self.dropped(self.activation(self.inner(rows))) - labels[:, None]).square().mean()

class Twice(torch.nn.Module):
    # Another function where TorchDynamo captures it.
    def forward(self, rows):
        return rows * (2 if torch.compiler.is_compiling() else 1)

def changing(operator, factor=1.01, backward=False):
    # A compiler in whose forward or backward graph an operator's results are multiplied.
    def compiled(graph, inputs):
        for node in list(graph.graph.nodes):
            if node.target is operator:
                with graph.graph.inserting_after(node):
                    other = graph.graph.call_function(aten.mul.Tensor, (node, factor))
                node.replace_all_uses_with(other, lambda user: user is not other)
        graph.recompile()
        return make_boxed_func(graph.forward)
    plain = lambda graph, inputs: make_boxed_func(graph.forward)
    first, last = (plain, compiled) if backward else (compiled, plain)
    return aot_autograd(fw_compiler=first, bw_compiler=last)

aten = torch.ops.aten
HOW = {
    "sound": dict(backend="aot_eager"),
    "forward": dict(backend=changing(aten.gelu.default)),
    "backward": dict(backend=changing(aten.gelu_backward.default, backward=True)),
    "first graph": dict(backend=changing(aten.sigmoid.default, float("nan"))),
    "captured": dict(backend="aot_eager"),
    "inductor": dict(options={"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}),
}
MODELS = {"captured": Model(Twice()), "inductor": Small()}

def subject_of(name):
    torch.manual_seed(0)
    model = MODELS.get(name, Model())
    batches = [(torch.randn(8, 8), torch.randint(0, 4, (8,))) for _ in range(equivalence.STEPS)]
    anew = functools.partial(torch.compile, **HOW[name])
    compiled = anew(model)
    return equivalence.Subject(
        model, lambda batch: compiled(*batch), batches, compiled=compiled, compile_anew=anew)

def diagnosed(name, figures=None, **how):
    subject = subject_of(name)
    before = [one.clone() for one in subject.model.parameters()]
    folder = pathlib.Path(sys.argv[1], name)
    folder.mkdir(exist_ok=True)
    made = diagnosis.diagnose(subject, figures or equivalence.examine(subject), folder, **how)
    assert all(map(torch.equal, before, subject.model.parameters()))
    return made

if sys.argv[2] == "inductor":
    made = {"inductor": diagnosed("inductor")}
else:
    made = {name: diagnosed(name) for name in HOW if name != "inductor"}
    broken = subject_of("forward")
    figures = equivalence.examine(broken)
    made["no time"] = diagnosed("forward", figures, limit_seconds=0.0)
    made["bounded"] = diagnosed("forward", figures, bounds={"gradients.single": 1e9})
    broken.compile_anew = None
    made["not anew"] = diagnosis.diagnose(broken, figures, sys.argv[1])
    made["no subject"] = diagnosis.diagnose(lambda: 1 / 0, figures, sys.argv[1])
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproducers")


@pytest.fixture(scope="module")
def made(jobs, folder):
    return jobs.run_code(CODE, str(folder), "planted")


@pytest.fixture(scope="module")
def by_inductor(jobs, folder):
    return jobs.run_code(CODE, str(folder), "inductor")["inductor"]


def test_a_sound_model_has_errors_of_eagers_size_in_every_group_and_nothing_else(made):
    sound = made["sound"]

    assert (None, None, [], None) == tuple(
        sound[key] for key in ("failing", "stage", "remedies", "ended")
    )
    assert {"first", "last", "layers.*.norm", "layers.*.inner"} == {
        row["group"] for row in sound["groups"]
    }
    assert all(row["ratio"] <= 10 and row["tensors"] % 2 == 0 for row in sound["groups"])


ACTIVATIONS = ["layers.0.activation", "layers.1.activation"]
FOUND = {
    "forward": (2, "torch._C._nn.gelu", ACTIVATIONS),
    "backward": (2, "torch._C._nn.gelu", ACTIVATIONS),
    "first graph": (1, "torch.sigmoid", None),
}


@pytest.mark.parametrize("fault", FOUND)
def test_a_planted_fault_is_found_by_stage_graph_and_operator(fault, made):
    document, (number, operator, modules) = made[fault], FOUND[fault]

    assert ("own", 2, number) == (
        document["stage"], document["graphs"], document["graph"]["number"],
    )  # fmt: skip
    assert [operator] == [one["operator"] for one in document["operators"]]
    helping = [one["modules"] for one in document["remedies"] if one["helps"]]
    assert ([modules] if modules else []) == helping
    failing = document["failing"]
    worst = math.inf if failing["ratio"] is None else failing["ratio"]
    assert worst > failing["bound"] >= document["stages"]["aot_eager_decomp_partition"]
    assert (fault == "first graph") == (failing["ratio"] is None)


def test_what_was_captured_wrongly_is_found_by_the_region_that_helps(made):
    document = made["captured"]

    assert ("eager", None, []) == tuple(document[key] for key in ("stage", "graph", "operators"))
    assert ACTIVATIONS == [one["modules"] for one in document["remedies"] if one["helps"]][-1]


def test_the_reproducer_shows_the_error_with_pytorch_alone(by_inductor, made, folder):
    document, script = by_inductor, folder / "inductor" / "reproducer.py"
    assert (1, ["torch.nn.functional.relu"]) == (
        document["graph"]["number"], [one["operator"] for one in document["operators"]],
    )  # fmt: skip
    assert [["activation"]] == [one["modules"] for one in document["remedies"] if one["helps"]]
    assert {"file": script.name, "shows": True} == document["reproducer"]
    assert {"name": "lowerings", "detail": "relu"} == document["subsystem"]

    ended = subprocess.run([PYTHON, "-I", script], capture_output=True, text=True, check=False)

    assert 3 == ended.returncode, ended.stderr
    assert "compilegate" not in script.read_text()
    # A fault of a backend that is not PyTorch's cannot be shown without it.
    assert made["forward"]["reproducer"] is None


@pytest.mark.parametrize(
    ("case", "code"),
    [("no time", "time_exceeded"), ("not anew", "cannot_compile"), ("no subject", "failed")],
)
def test_what_cannot_be_looked_into_is_named(case, code, made):
    assert code == made[case]["ended"]["code"]


def test_the_bound_of_a_table_is_what_counts(made):
    assert (None, 1e9) == (made["bounded"]["failing"], made["bounded"]["groups"][0]["bound"])
