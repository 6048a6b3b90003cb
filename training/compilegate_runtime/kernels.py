"""Seconds of a step by graph and class of kernel, folded from a trace of torch.profiler.

On a GPU the time is that of its kernels, each in the step and the graph that launched it. On a
processor it is what each operator takes without those that it calls; there a step is divided
exactly. Of the profiled steps the middle one counts, figure by figure: another program may
interrupt one of them.
"""

import collections
import re
import statistics

from compilegate_runtime.evidence import rounded

STEP = "compilegate step"  # the annotation around each
EAGER, COMPILED = "eager", "compiled"
IDLE, OTHER, OPTIMIZER = "idle", "other", "optimizer"
# Bounds of the document: rows, of which further graphs become one, kernels, and a name's length.
MOST_ROWS, MOST_KERNELS, MOST_CHARACTERS, FURTHER = 24, 16, 96, "further graphs"
HOST, LAUNCHES = ("cpu_op", "user_annotation"), ("cuda_runtime", "cuda_driver")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")  # of a GPU
# (class, pattern of names, whose names they are): the first that is found in the name counts.
CLASSES = (
    (
        "pointwise",
        r"triton_(poi|for)_|cpp_fused|compiledfxgraph|^compiledfunction|^torch-compiled region",
        "TorchInductor's fused kernels. Those for processors have no events of their own: their "
        "time is that of the graph which calls them, with its guards and wrappers",
    ),
    (
        "communication",
        r"nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv|c10d::|gloo:",
        "NCCL's kernels, torch.ops.c10d and _c10d_functional, Gloo's annotations; before "
        "reductions, which all-reduce is named after",
    ),
    ("attention", r"flash|fmha|attention|\bmha", "ATen, FlashAttention, CUTLASS, cuDNN"),
    (
        "convolution",
        r"conv(?!ert)|fprop|dgrad|wgrad|winograd",
        "ATen, cuDNN; before multiplications, by which cuDNN computes it (implicit_gemm)",
    ),
    (
        "matmul",
        r"gemm|gemv|cutlass|cublas|nvjet|wgmma|xmma|splitk|triton_tem|matmul|linear\b|linear_pointwise"
        r"|(^|::)_?(scaled_|int_|grouped_)?(add|b|badd)?b?mm\b|aten::(addmv|mv|dot)\b",
        "cuBLAS, CUTLASS, TorchInductor's templates, ATen; oneDNN's mkldnn::_linear_pointwise",
    ),
    (
        "normalization",
        r"(layer|batch|group|instance|rms)_?norm|gammabeta|bn_(fw|bw)",
        "ATen, cuDNN; fused ones by the operators that TorchInductor puts into a kernel's name",
    ),
    (
        OPTIMIZER,
        r"multi_tensor|_foreach|_?fused_(adam|sgd|adagrad)|^optimizer\.step",
        "ATen's kernels over lists of tensors, which clipping gradients uses as well; whatever "
        "runs within Optimizer.step counts, too",
    ),
    (
        "copy",
        r"memcpy|memset|copy_kernel|catarray|aten::(copy_|_to_copy|to|cat|clone|contiguous|fill_"
        r"|zero_)$",
        "Kineto's names of transfers, ATen",
    ),
    (
        "reduction",
        r"triton_(red|per)_|reduce|softmax|logsumexp|nll_loss|cross_entropy|cumsum|welford"
        r"|aten::(sum|mean|a?max|a?min|prod|var|std|norm|linalg_vector_norm|any|all)\b",
        "TorchInductor's looped and persistent reductions, ATen",
    ),
    (
        "pointwise",
        r"elementwise|vectorized|gelu|relu|silu|sigmoid|tanh|dropout|bernoulli"
        r"|aten::(add|sub|r?sub|mul|div|pow|square|r?sqrt|exp|log|neg|abs|where|lerp|clamp"
        r"|masked_fill|addc(mul|div)|maximum|minimum)_?\b",
        "ATen",
    ),
)
_PATTERNS = [(name, re.compile(pattern)) for name, pattern, _ in CLASSES]
_REGION = re.compile(r"Torch-Compiled Region: (\S+)")


def kernel_class(name):
    """The class of a kernel or an operator by its name."""
    low = name.lower()
    return next((one for one, pattern in _PATTERNS if pattern.search(low)), OTHER)


class Span:
    """An event of a thread and what it lies in; ``own`` are microseconds without inner events."""

    __slots__ = ("end", "event", "graph", "optimizer", "own", "step")

    def __init__(self, event, parent, graph):
        self.event, self.end, self.own = event, event["ts"] + event["dur"], event["dur"]
        self.step = event["ts"] if event["name"] == STEP else parent and parent.step
        self.graph = (parent and parent.graph) or graph
        starts = event["name"].startswith("Optimizer.step")
        self.optimizer = starts or bool(parent and parent.optimizer)
        if parent is not None:
            parent.own -= event["dur"]

    def class_of(self, name):
        """The class of work of that name which this span does or launches."""
        if self.optimizer:
            return OPTIMIZER
        return kernel_class(name)


def spans(events):
    """A Span for each event of the host, in the order of time.

    A graph is named by TorchDynamo's number of what it compiled, ``0/0``; its backward pass, whose
    event has the forward pass's sequence number, belongs to it.
    """
    stacks, graphs, made = collections.defaultdict(list), {}, []
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        stack, name = stacks[event.get("tid")], event["name"]
        while stack and stack[-1].end <= event["ts"]:
            stack.pop()
        region, graph = _REGION.search(name), None
        sequence = (event.get("args") or {}).get("Sequence number")
        if region:
            graph = f"graph {region.group(1)}"[:MOST_CHARACTERS]
        elif name.startswith("CompiledFunction") or "CompiledFxGraph" in name:
            graph = graphs.get(sequence, COMPILED)
        span = Span(event, stack[-1] if stack else None, graph)
        if name == "CompiledFunction":
            graphs[sequence] = span.graph
        stack.append(span)
        made.append(span)
    return made


def folded(events, on_gpu):
    """The rows and the longest kernels of a trace's steps, by names of the document.

    Both are empty where the trace holds no step or a GPU's kernels are missing in it.
    """
    timed = [one for one in events if one.get("ph") == "X" and one.get("dur") is not None]
    host = spans(one for one in timed if one.get("cat") in (*HOST, *LAUNCHES))
    begins = sorted(span.step for span in host if span.event["name"] == STEP)
    work = _of_gpu(timed, host) if on_gpu else _of_processor(host)
    steps = {begin: collections.Counter() for begin in begins}
    for begin, key, micros in work:
        steps[begin][key] += micros
    classes, kernels = ([] for _ in range(2))
    for step in steps.values():
        by_class = collections.Counter()
        for (graph, kind, _name), micros in step.items():
            by_class[graph, kind] += micros
        classes.append(by_class)
        kernels.append(collections.Counter({key: step[key] for key in step if key[1] != IDLE}))
    named = [
        {"graph": graph, "kernel_class": kind, "name": name, "seconds": seconds}
        for (graph, kind, name), seconds in _middle(kernels)[:MOST_KERNELS]
    ]
    return _bounded(_middle(classes)), named


def _middle(steps):
    """(key, seconds in the middle step) of each, the longest first."""
    keys = set().union(*steps)
    seconds = [(key, statistics.median(step[key] for step in steps) / 1e6) for key in keys]
    ordered = sorted(seconds, key=lambda one: (-one[1], one[0]))
    return [(key, rounded(value, 4)) for key, value in ordered if value > 0]


def _bounded(rows):
    """The document's rows; the shortest of very many are added up by class."""
    rest = collections.Counter()
    for (_graph, kind), seconds in rows[MOST_ROWS:]:
        rest[kind] += seconds
    kept = rows[:MOST_ROWS] + [((FURTHER, kind), value) for kind, value in sorted(rest.items())]
    return [
        {"graph": graph, "kernel_class": kind, "seconds": value} for (graph, kind), value in kept
    ]


def _of_processor(host):
    """(step, (graph, class, name), microseconds) of everything within a step."""
    for span in host:
        if span.step is None or span.own <= 0:
            continue
        name = span.event["name"]
        kind = IDLE if name == STEP else span.class_of(name)
        short = name.strip("# ").replace("Call CompiledFxGraph", "CompiledFxGraph")
        yield span.step, (span.graph or EAGER, kind, short[:MOST_CHARACTERS]), span.own


def _of_gpu(timed, host):
    """As ``_of_processor``, of a GPU's kernels and of the time between those of a step."""
    launches = {
        span.event["args"].get("correlation"): span
        for span in host
        if span.event.get("cat") in LAUNCHES and span.event.get("args")
    }
    begun = [(span.event["ts"], span.end) for span in host if span.event["name"] == STEP]
    busy = collections.defaultdict(list)
    for event in timed:
        launch = launches.get((event.get("args") or {}).get("correlation"))
        if event.get("cat") not in WORK or launch is None:
            continue
        at = launch.event["ts"]
        step = next((begin for begin, end in begun if begin <= at < end), None)
        if step is None:
            continue  # between two steps
        busy[step].append((event["ts"], event["ts"] + event["dur"]))
        name = event["name"]
        key = (launch.graph or EAGER, launch.class_of(name), name[:MOST_CHARACTERS])
        yield step, key, event["dur"]
    for step, intervals in busy.items():
        idle, until = 0.0, min(intervals)[0]
        for begin, end in sorted(intervals):
            idle, until = idle + max(0.0, begin - until), max(until, end)
        yield step, (EAGER, IDLE, ""), idle
