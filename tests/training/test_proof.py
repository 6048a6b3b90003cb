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

def ordinary():
    compiler = compiler_for("torch_compile")
    train(compiler.apply(a_model()))
    return compiler

def eager_beside_a_library():
    compiler = compiler_for("torch_compile")
    train(compiler.apply(a_model(eager=True, forward=library)))
    return compiler

def one_of_two():
    compiler = compiler_for("torch_compile")
    train(compiler.apply(a_model()))
    train(compiler.apply(a_model(eager=True)))
    return compiler

def only_evaluated():
    compiler = compiler_for("torch_compile")
    with torch.no_grad():
        compiler.apply(a_model())(torch.randn(2, 4))
    return compiler

def evaluated_then_trained_eagerly():
    compiler = compiler_for("torch_compile")
    model = compiler.apply(a_model())
    with torch.no_grad():
        model(torch.randn(2, 4))
    with torch.compiler.set_stance("force_eager"):
        train(model)
    return compiler

def evaluated_then_trained():
    compiler = compiler_for("torch_compile")
    model = compiler.apply(a_model())
    with torch.no_grad():
        model(torch.randn(2, 4))
    train(model)
    return compiler

def a_teacher_that_never_trains():
    compiler = compiler_for("torch_compile")
    teacher, student = compiler.apply(a_model()), compiler.apply(a_model())
    with torch.no_grad():
        teacher(torch.randn(2, 4))
    train(student)
    return compiler

def a_part_compiled_with_the_whole():
    compiler = compiler_for("torch_compile")
    model = a_model()
    model.inner = compiler.apply(model.inner)
    train(compiler.apply(model))
    return compiler

def two_of_a_kind_with_a_break():
    compiler = compiler_for("torch_compile")
    models = [compiler.apply(a_model(forward=lambda x: (torch._dynamo.graph_break(), x + 1)[1]))
              for _ in range(2)]
    for model in models:
        train(model)
    return compiler

def of_blocks(compiler):
    block = a_model()
    model = nn.Sequential(nn.Sequential(*(copy.deepcopy(block) for _ in range(3))))
    return compiler.apply(model)

def blocks_in_evaluation_mode():
    compiler = compiler_for("torch_compile", regions="auto")
    train(of_blocks(compiler).eval())
    return compiler

def in_evaluation_mode():
    compiler = compiler_for("torch_compile")
    train(compiler.apply(a_model().eval()))
    return compiler

def a_copy_of_blocks():
    compiler = compiler_for("torch_compile", regions="auto")
    model = of_blocks(compiler)
    train(model)
    other = copy.deepcopy(copy.deepcopy(model))
    for weight in other.parameters():
        weight.data.zero_()
    assert float(other(torch.ones(2, 4)).abs().sum().detach()) == 0.0
    return compiler

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4)) for _ in range(2)))
    def forward(self, rows):
        return self.inner(rows)

def saved_whole(**how):
    compiler = compiler_for("torch_compile", **how)
    model = compiler.apply(Whole())
    train(model)
    file = io.BytesIO()
    torch.save(model, file)
    assert b"compilegate" not in file.getvalue()  # it loads where the runtime is not
    file.seek(0)
    rows = torch.randn(2, 4)
    with torch.no_grad():
        assert torch.allclose(model(rows), torch.load(file, weights_only=False)(rows))
    return compiler

def saved():
    return saved_whole()

def saved_blocks():
    return saved_whole(regions="inner")

def blocks():
    compiler = compiler_for("torch_compile", regions="auto")
    block = a_model()
    model = nn.Module()
    model.blocks = nn.ModuleList(copy.deepcopy(block) for _ in range(3))
    compiler.apply(model)
    call = lambda rows: model.blocks[2](model.blocks[1](model.blocks[0](rows)))
    model.eval()
    with torch.no_grad():
        call(torch.randn(2, 4))  # as written: its graph would count as another version
    model.train()
    train(call)
    return compiler

def with_the_optimizer():
    compiler = compiler_for("torch_compile", "default", "true", optimizer=True)
    model = compiler.apply(a_model())
    train(model)
    compiler.step(torch.optim.SGD(model.parameters(), lr=0.1))
    assert "dynamic true, 1 optimizer graphs" in compiler.evidence()["proof"]
    return compiler

def ever_new_shapes():
    compiler = compiler_for("torch_compile", dynamic="false")
    model = compiler.apply(a_model())
    for rows in range(2, 14):
        model(torch.randn(rows, 4)).sum().backward()
    return compiler

def blocks_compiled_one_by_one():
    compiler = compiler_for("torch_compile")
    block = a_model()
    blocks = [compiler.compiled(copy.deepcopy(block)) for _ in range(12)]
    for block in blocks:
        train(block)
    return compiler

def a_mode():
    compiler = compiler_for("torch_compile", "max-autotune", "false")
    train(compiler.apply(a_model()))
    assert "mode max-autotune" in compiler.evidence()["proof"]
    return compiler

def a_copy():
    compiler = compiler_for("torch_compile")
    model = compiler.apply(a_model())
    other = copy.deepcopy(model)
    other._orig_mod.inner.weight.data.zero_()
    other._orig_mod.inner.bias.data.zero_()
    train(model)
    assert float(other(torch.ones(2, 4)).abs().sum().detach()) == 0.0
    return compiler

results = {}
for case in (ordinary, eager_beside_a_library, one_of_two, only_evaluated,
             evaluated_then_trained_eagerly, evaluated_then_trained, a_teacher_that_never_trains,
             a_part_compiled_with_the_whole, two_of_a_kind_with_a_break, blocks,
             blocks_compiled_one_by_one, a_mode, a_copy, in_evaluation_mode,
             blocks_in_evaluation_mode, a_copy_of_blocks, saved, saved_blocks,
             with_the_optimizer, ever_new_shapes):
    torch._dynamo.reset()
    compiler = case()
    try:
        compiler.verify()
        why = None
    except NotAppliedError as error:
        why = str(error)
    evidence = compiler.evidence()
    results[case.__name__] = [evidence["applied"], evidence["graphs"], why]
    given_up = [evidence["given_up"], evidence["proof"]]
print(json.dumps([results, given_up]))
"""


@pytest.fixture(scope="module")
def results(jobs):
    return jobs.run_code(CASES)


@pytest.fixture(scope="module")
def cases(results):
    return results[0]


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
        ("a_mode", 1),
        ("a_copy", 1),
        ("in_evaluation_mode", 1),
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
def test_a_compiler_that_gave_up_on_ever_new_shapes_says_so(results):
    """TorchDynamo compiles one function eight times and runs it eager from then on."""
    (cases, (given_up, proof)) = results

    assert [True, 8, None] == cases["ever_new_shapes"]
    assert 1 <= given_up
    assert f"{given_up} times over the recompile limit, eager from there on" in proof
