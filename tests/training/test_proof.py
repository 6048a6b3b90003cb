"""torch.compile's proof is of what the arm compiled, not of what else the process did."""

import pytest

CASES = """
import copy, io, json
import torch
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.errors import NotAppliedError
from torch import nn

def a_model(eager=False, forward=None):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)
        def forward(self, rows):
            return (forward or (lambda x: x))(self.inner(rows))
    if eager:
        Model.forward = torch._dynamo.disable(Model.forward)
    return Model()

library = torch.compile(lambda rows: rows.sin() + 1)

def train(call):
    call(torch.randn(2, 4)).sum().backward()

results = {}

# Runs the function, which trains with a compiler of its own, and keeps what it proves.
def case(**how):
    def run(function):
        torch._dynamo.reset()
        compiler = compiler_for("torch_compile", **how)
        function(compiler)
        try:
            compiler.verify()
            why = None
        except NotAppliedError as error:
            why = str(error)
        evidence = compiler.evidence()
        results[function.__name__] = [evidence["applied"], evidence["graphs"], why]
        results["given up"] = [evidence["given_up"], evidence["proof"]]
    return run

def evaluate(model):
    with torch.no_grad():
        return model(torch.randn(2, 4))

# Whether it gives nothing once its weights are zero.
def emptied(model):
    for weight in model.parameters():
        weight.data.zero_()
    return float(model(torch.ones(2, 4)).abs().sum().detach()) == 0.0

@case()
def ordinary(compiler):
    train(compiler.apply(a_model()))

@case()
def eager_beside_a_library(compiler):
    train(compiler.apply(a_model(eager=True, forward=library)))

@case()
def one_of_two(compiler):
    train(compiler.apply(a_model()))
    train(compiler.apply(a_model(eager=True)))

@case()
def only_evaluated(compiler):
    evaluate(compiler.apply(a_model()))

@case()
def evaluated_then_trained_eagerly(compiler):
    evaluate(model := compiler.apply(a_model()))
    with torch.compiler.set_stance("force_eager"):
        train(model)

@case()
def evaluated_then_trained(compiler):
    evaluate(model := compiler.apply(a_model()))
    train(model)

@case()
def a_teacher_that_never_trains(compiler):
    teacher, student = compiler.apply(a_model()), compiler.apply(a_model())
    evaluate(teacher)
    train(student)

@case()
def a_part_compiled_with_the_whole(compiler):
    model = a_model()
    model.inner = compiler.apply(model.inner)
    train(compiler.apply(model))

@case()
def two_of_a_kind_with_a_break(compiler):
    models = [compiler.apply(a_model(forward=lambda x: (torch._dynamo.graph_break(), x + 1)[1]))
              for _ in range(2)]
    for model in models:
        train(model)

def of_blocks(compiler):
    block = a_model()
    model = nn.Sequential(nn.Sequential(*(copy.deepcopy(block) for _ in range(3))))
    return compiler.apply(model)

@case(regions="auto")
def blocks_in_evaluation_mode(compiler):
    train(of_blocks(compiler).eval())

@case(regions="auto")
def a_copy_of_blocks(compiler):
    train(model := of_blocks(compiler))
    assert emptied(copy.deepcopy(copy.deepcopy(model)))

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4)) for _ in range(2)))
    def forward(self, rows):
        return self.inner(rows)

def saved_whole(compiler):
    train(model := compiler.apply(Whole()))
    file = io.BytesIO()
    torch.save(model, file)
    assert b"compilegate" not in file.getvalue()  # it loads where the runtime is not
    file.seek(0)
    rows = torch.randn(2, 4)
    with torch.no_grad():
        assert torch.allclose(model(rows), torch.load(file, weights_only=False)(rows))

@case()
def saved(compiler):
    saved_whole(compiler)

@case(regions="inner")
def saved_blocks(compiler):
    saved_whole(compiler)

@case(regions="auto")
def blocks(compiler):
    block = a_model()
    model = nn.Module()
    model.blocks = nn.ModuleList(copy.deepcopy(block) for _ in range(3))
    compiler.apply(model)
    call = lambda rows: model.blocks[2](model.blocks[1](model.blocks[0](rows)))
    model.eval()
    evaluate(call)  # as written: its graph would count as another version
    model.train()
    train(call)

@case(mode="reduce-overhead", dynamic="true", optimizer=True)
def with_the_optimizer(compiler):
    train(model := compiler.apply(a_model()))
    compiler.step(torch.optim.SGD(model.parameters(), lr=0.1))
    assert "mode reduce-overhead" in compiler.evidence()["proof"]
    assert "dynamic true" in compiler.evidence()["proof"]
    assert ", 1 optimizer graphs" in compiler.evidence()["proof"]

@case()
def blocks_compiled_one_by_one(compiler):
    block = a_model()
    for block in [compiler.compiled(copy.deepcopy(block)) for _ in range(12)]:
        train(block)

@case()
def a_copy(compiler):
    other = copy.deepcopy(model := compiler.apply(a_model()))
    train(model)
    assert emptied(other)

@case(dynamic="false")
def ever_new_shapes(compiler):
    model = compiler.apply(a_model())
    for rows in range(2, 14):
        model(torch.randn(rows, 4)).sum().backward()

print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def cases(jobs):
    return jobs.run_code(CASES)


@pytest.mark.training
@pytest.mark.parametrize(
    ("case", "graphs"),
    [
        ("ordinary", 1),
        ("evaluated_then_trained", 2),
        ("a_teacher_that_never_trains", 2),
        ("a_part_compiled_with_the_whole", 1),
        ("two_of_a_kind_with_a_break", 4),
        ("blocks", 2),  # the first one's input has no gradient
        ("blocks_compiled_one_by_one", 1),
        ("a_copy", 1),
        ("blocks_in_evaluation_mode", 2),
        ("a_copy_of_blocks", 2),
        ("saved", 2),  # and one for the evaluation
        ("saved_blocks", 3),
        ("with_the_optimizer", 2),
    ],
)
def test_what_trains_compiled_is_proven_by_its_own_graphs(cases, case, graphs):
    assert [True, graphs, None] == cases[case]


@pytest.mark.training
@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("eager_beside_a_library", "Model trained uncompiled"),
        ("one_of_two", "Model trained uncompiled"),
        ("one_of_two", "Only Model could not be compiled: call it inside of the model that is"),
        ("only_evaluated", "was requested but not applied"),
        ("evaluated_then_trained_eagerly", "Model trained uncompiled"),
    ],
)
def test_graphs_of_something_else_prove_nothing(cases, case, why):
    applied, _, message = cases[case]

    assert applied is False
    assert why in message


@pytest.mark.training
def test_a_compiler_that_gave_up_on_ever_new_shapes_says_so(cases):
    """TorchDynamo compiles one function eight times and runs it eager from then on."""
    given_up, proof = cases["given up"]  # of the last case

    assert [True, 8, None] == cases["ever_new_shapes"]
    assert 1 <= given_up
    assert f"{given_up} times over the recompile limit, eager from there on" in proof
