from distributions.doctor.tests.scripts import loop, trained

CASES = {
    "compile-unused": (
        [trained("import torch\ntorch.compile(model)"),
         trained("from torch import compile as tc\ntc(model, mode='max-autotune')")],
        [
            trained("import torch\nmodel = torch.compile(model)"),
            trained("model.compile()"),
            trained("import torch\nrun(torch.compile(model))"),
            trained("import re\nre.compile('x')"),
        ],
    ),
    "compile-in-loop": (
        [loop("fast = torch.compile(model)"),
         trained("import torch\nwhile True:\n    model = torch.compile(model)")],
        [
            loop("pass", after="model = torch.compile(model)"),
            trained("import torch\nfor layer in layers:\n    layer = torch.compile(layer)"),
            trained("import torch\nfor i, block in enumerate(blocks):\n"
                    "    blocks[i] = torch.compile(block)"),
            trained("import torch\nfor x in y:\n    def later(m):\n"
                    "        return torch.compile(m)"),
        ],
    ),
    "compile-after-wrapping": (
        [
            trained("import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
                    "model = DDP(model)\nmodel = torch.compile(model)"),
            trained("import torch\nfrom torch.distributed.fsdp import FSDP\n"
                    "model = torch.compile(FSDP(model))"),
        ],
        [
            trained("import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
                    "model = torch.compile(model)\nmodel = DDP(model)"),
        ],
    ),
    "compile-off": (
        [
            trained("import os\nos.environ['TORCH_COMPILE_DISABLE'] = '1'"),
            trained("import torch._dynamo\ntorch._dynamo.config.suppress_errors = True"),
            trained("import torch\nmodel = torch.compile(model, disable=True)"),
        ],
        [
            trained("import os\nos.environ['TORCH_COMPILE_DISABLE'] = '0'"),
            trained("import torch._dynamo\ntorch._dynamo.config.suppress_errors = False"),
            trained("import argparse, torch\np = argparse.ArgumentParser()\n"
                    "p.add_argument('--eager', action='store_true')\nargs = p.parse_args()\n"
                    "model = torch.compile(model, disable=args.eager)"),
        ],
    ),
}  # fmt: skip
