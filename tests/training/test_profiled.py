"""The profiled steps behind a segment: what a trace says, and that they fail and slow no run."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from compilegate_runtime import kernels, profiled
from compilegate_runtime.compilers import NoCompiler
from compilegate_runtime.device import Processor
from compilegate_runtime.errors import DivergedError
from compilegate_runtime.recorder import Recorder

from compilegate.domain.where_time_goes import read_profile
from tests.training.stand_ins import Clock
from tests.training.test_launch import PLAIN

ASKED = {profiled.VARIABLE: profiled.ASKED}
LANGUAGE_MODEL = {"width": 16, "layers": 1, "heads": 2, "block": 16, "steps": 9, "seed": 1}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # of GPUs: cuBLAS, cuDNN, ATen, NCCL, TorchInductor
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "matmul"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "matmul"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>", "matmul"),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "convolution"),
        ("flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128>>", "attention"),
        ("void at::native::vectorized_layer_norm_kernel<float>", "normalization"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduction"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>",
         "pointwise"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimizer"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
        ("Memcpy HtoD (Pinned -> Device)", "copy"),
        ("triton_poi_fused__to_copy_add_native_layer_norm_3", "pointwise"),
        ("triton_per_fused_native_layer_norm_0", "normalization"),
        ("triton_red_fused__log_softmax_nll_loss_forward_7", "reduction"),
        ("triton_tem_fused_addmm_2", "matmul"),
        # of processors
        ("aten::addmm", "matmul"), ("aten::bmm", "matmul"), ("aten::mm", "matmul"),
        ("aten::_softmax", "reduction"), ("aten::sum", "reduction"), ("aten::add_", "pointwise"),
        ("aten::convert_element_type", "other"), ("aten::max_pool2d", "other"),
        ("aten::copy_", "copy"), ("aten::sort", "other"), ("planted::slow", "other"),
    ],
)  # fmt: skip
def test_a_kernel_has_a_class_by_its_name(name: str, expected: str) -> None:
    assert expected == kernels.kernel_class(name)


def event(
    cat: str, name: str, at: float, lasts: float, tid: int = 1, **args: object
) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": at, "dur": lasts, "tid": tid, "args": args}


def host_step(at: float) -> list[dict[str, Any]]:
    """A compiled forward pass, its backward pass, an optimizer's step: 100 microseconds."""
    number = {"Sequence number": int(at)}
    return [
        event("user_annotation", kernels.STEP, at, 100),
        event("cpu_op", "Torch-Compiled Region: 0/0", at + 10, 30),
        event("cpu_op", "CompiledFunction", at + 11, 28, **number),
        event("cpu_op", "aten::mm", at + 12, 20),
        event("cpu_op", "aten::copy_", at + 14, 5),
        event("cpu_op", "CompiledFunctionBackward", at + 50, 20, **number),
        event("cpu_op", "aten::mm", at + 52, 10),
        event("user_annotation", "Optimizer.step#SGD.step", at + 80, 10),
        event("cpu_op", "aten::mul_", at + 81, 4),
        event("cpu_op", "aten::mul", at + 92, 4),
    ]


def test_a_processors_step_is_divided_by_what_each_operator_takes_itself() -> None:
    outside = event("cpu_op", "aten::sort", 150, 40)
    trace = [*host_step(0), outside, *host_step(1000), *host_step(2000), {"ph": "M"}]
    rows, longest = kernels.folded(trace, on_gpu=False)
    micros = {(one["graph"], one["kernel_class"]): one["seconds"] * 1e6 for one in rows}

    assert pytest.approx({
        ("eager", "idle"): 36, ("graph 0/0", "matmul"): 25, ("graph 0/0", "pointwise"): 20,
        ("eager", "optimizer"): 10, ("graph 0/0", "copy"): 5, ("eager", "pointwise"): 4,
    }) == micros  # fmt: skip
    assert 100 == pytest.approx(sum(micros.values()))
    assert ("aten::mm", "graph 0/0", 25) == (
        longest[0]["name"], longest[0]["graph"], pytest.approx(longest[0]["seconds"] * 1e6),
    )  # fmt: skip


def test_what_interrupts_one_of_three_steps_is_left_out() -> None:
    slow = [{**one, "dur": one["dur"] * 50 if one["name"] == kernels.STEP else one["dur"]}
            for one in host_step(1000)]  # fmt: skip
    usual = kernels.folded([*host_step(0), *host_step(9000), *host_step(19000)], on_gpu=False)

    assert usual == kernels.folded([*host_step(0), *slow, *host_step(19000)], on_gpu=False)


def test_a_gpus_kernels_belong_to_the_step_and_the_graph_that_launched_them() -> None:
    """Its queue is behind: kernels of the first step run in the second one."""
    trace = []
    for number, at in enumerate((0, 1000, 2000)):
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "lasts": 1}
        first = 10 * number + 1
        trace += [
            *host_step(at),
            event(at=at + 13, **launch, correlation=first),
            event(at=at + 53, **launch, tid=2, correlation=first + 1),
            event(at=at + 82, **launch, correlation=first + 2),
            event(at=at + 500, **launch, correlation=first + 3),  # of an evaluation
            event("kernel", "sm90_gemm", at + 1100, 40, 7, correlation=first),
            event("kernel", "reduce_kernel", at + 1150, 30, 8, correlation=first + 1),
            event("gpu_memset", "Memset (Device)", at + 1160, 40, 7, correlation=first + 2),
            event("kernel", "evaluating", at + 1500, 400, 7, correlation=first + 3),
        ]
    rows, longest = kernels.folded(trace, on_gpu=True)

    assert [
        ("eager", "optimizer", 40), ("graph 0/0", "matmul", 40), ("eager", "reduction", 30),
        ("eager", "idle", 10),
    ] == [
        (one["graph"], one["kernel_class"], round(one["seconds"] * 1e6)) for one in rows
    ]  # fmt: skip
    assert {"sm90_gemm", "reduce_kernel", "Memset (Device)"} == {one["name"] for one in longest}
    assert ([], []) == kernels.folded(host_step(0), on_gpu=True)


def test_a_document_stays_small_and_loses_no_time() -> None:
    at, trace = 0.0, [event("user_annotation", kernels.STEP, 0, 10**6)]
    for number in range(100):
        at += 200
        trace += [
            event("cpu_op", f"Torch-Compiled Region: {number}/0", at, 150),
            event("cpu_op", "aten::mm" + "x" * 500, at + 1, 100 + number / 10),
        ]
    rows, longest = kernels.folded(trace, on_gpu=False)

    assert len(json.dumps([rows, longest])) < 8000
    assert 1.0 == pytest.approx(sum(one["seconds"] for one in rows), rel=1e-3)
    assert kernels.FURTHER in {one["graph"] for one in rows}


# ---- behind a run -----------------------------------------------------------------------------


class Torch:
    """A profiler that fails where it is told to."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.running = fails, False
        self.profiler = self
        self.ProfilerActivity = SimpleNamespace(CPU="cpu", CUDA="cuda")

    def profile(self, activities: list[str]) -> Torch:
        assert ["cpu"] == activities
        return self

    def record_function(self, _name: str) -> Torch:
        return self

    def __enter__(self) -> None:
        self._do("step")

    def __exit__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        self._do("start")
        self.running = True

    def stop(self) -> None:
        self._do("stop")
        self.running = False

    def export_chrome_trace(self, path: str) -> None:
        self._do("export")
        events = [one for at in (0, 1000, 2000) for one in host_step(at)]
        with open(path, "w") as file:  # noqa: PTH123 - as torch takes it
            json.dump({"traceEvents": [] if self.fails == "empty" else events}, file)

    def _do(self, what: str) -> None:
        if self.fails == what:
            raise RuntimeError(what)


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Trains a segment of two steps; its summary, the steps taken, the steps recorded."""

    def run(fails="", *, batches=9, lasts=0.0, asked=True, trained=lambda: None, loss=1.0, whole=5):
        if asked:
            monkeypatch.setenv(profiled.VARIABLE, profiled.ASKED)
        device, clock, taken = Processor(), Clock(), []
        device.torch = Torch(fails)
        recorder = Recorder(
            tmp_path,
            {"full_run_steps": whole},
            steps=2,
            compiler=NoCompiler(),
            device=device,
            clock=clock,
        )
        try:
            with recorder.training():
                for batch in recorder.steps(range(batches)):
                    taken.append(batch)
                    clock.now += lasts
                    if len(taken) > 2:
                        trained()
                    recorder.end_step(loss, 1)
            recorder.finish()
        finally:
            recorder.close()
        assert not device.torch.running or fails == "stop"
        summary = json.loads((tmp_path / "summary.json").read_text())
        return summary, len(taken), len((tmp_path / "steps.jsonl").read_text().splitlines())

    return run


def test_three_steps_behind_a_complete_run_are_profiled_and_none_is_recorded(train) -> None:
    summary, taken, recorded = train()

    assert (True, 2, 5, 2) == (summary["finished"], summary["steps"], taken, recorded)
    assert "cpu" == summary["profile"]["device"]
    assert read_profile(summary["profile"]).absent is None
    assert 36 == round(1e6 * summary["profile"]["rows"][0]["seconds"])


def test_a_run_that_is_not_asked_for_a_profile_takes_no_further_step(train) -> None:
    summary, taken, recorded = train(asked=False)

    assert (True, 2, 2) == (summary["finished"], taken, recorded)
    assert "profile" not in summary


def _broken_script() -> None:
    raise ValueError("the script's own")


@pytest.mark.parametrize(
    ("wrong", "code", "steps"),
    [
        ({"fails": "start"}, "failed", 2),
        ({"fails": "step"}, "failed", 3),
        ({"fails": "stop"}, "failed", 5),
        ({"fails": "export"}, "failed", 5),
        ({"fails": "empty"}, "no_kernels", 5),
        ({"batches": 4}, "incomplete", 4),
        ({"lasts": 7.0}, "steps_too_long", 2),
        ({"whole": 4}, "incomplete", 2),
        ({"trained": _broken_script}, "incomplete", 3),
    ],
)
def test_whatever_goes_wrong_behind_a_run_leaves_it_complete_and_is_named(
    train, wrong, code, steps
) -> None:
    summary, taken, recorded = train(**wrong)

    assert (True, None, 2, steps) == (summary["finished"], summary["reason"], recorded, taken)
    assert code == summary["profile"]["absent"] == read_profile(summary["profile"]).absent


def test_profiling_ends_when_its_time_is_over(train, monkeypatch) -> None:
    monkeypatch.setattr(profiled, "MOST_SECONDS", 0.05)

    def hangs() -> None:
        while True:
            pass

    summary, *_ = train(trained=hangs)

    assert (True, "time_exceeded") == (summary["finished"], summary["profile"]["absent"])


def test_of_several_processes_each_takes_every_step_though_profiling_failed() -> None:
    said: list[dict[str, Any]] = []
    device = Processor()
    device.torch = Torch("start")
    steps = profiled.ProfiledSteps(device, said.append, rank=0, processes=2, step_seconds=0.0)
    left = []
    for _ in range(3):
        left.append(steps.left)
        steps.begin_step()
        steps.end_step()

    assert ([3, 2, 1], 0, ["failed"]) == (left, steps.left, [one["absent"] for one in said])


def test_a_run_that_fails_is_not_profiled(train) -> None:
    with pytest.raises(DivergedError):
        train(loss=float("nan"))


def test_every_code_of_a_job_is_known_to_who_reads_it() -> None:
    assert profiled.CODES == {read_profile({"absent": code}).absent for code in profiled.CODES}


@pytest.mark.training
@pytest.mark.parametrize(
    ("program", "settings", "graph"),
    [
        ("launch.py", {**PLAIN, "full_run_samples": 64, "compiler": "torch_compile"}, "graph"),
        ("causal_lm.py", LANGUAGE_MODEL, "eager"),
    ],
)
def test_segments_of_scripts_and_families_are_profiled(jobs, program, settings, graph) -> None:
    done = jobs.run(program, ASKED, **settings, max_steps=2)
    assert 0 == done.status, done.output
    summary = done.summary()

    assert (True, 2, 2) == (summary["finished"], summary["steps"], len(done.steps()))
    assert "absent" not in summary["profile"], summary["profile"]
    rows = summary["profile"]["rows"]
    assert {"matmul", "optimizer", "idle"} <= {one["kernel_class"] for one in rows}
    assert {graph, "eager"} == {one["graph"].partition(" ")[0] for one in rows}
