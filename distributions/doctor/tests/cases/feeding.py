from distributions.doctor.tests.scripts import loop, trained

TRAINER = "from transformers import Trainer, TrainingArguments\n"
OPTIONS = """
import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--batch_size", type=int, default=32)
p.add_argument("--lr", type=float, default=1e-3)
p.add_argument("--workers", type=int, default={workers})
args = p.parse_args()
"""
MAP = "import datasets\ndata = datasets.load_dataset('x').map(f, batched=True{more})"
CASES = {
    "loader-workers": (
        [
            loop("pass", after="train_loader = DataLoader(data, batch_size=8)"),
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, num_workers=0)"),
            trained(OPTIONS.format(workers=0))
            + "train_loader = DataLoader(data, 8, num_workers=args.workers)",
            TRAINER + "Trainer(None, TrainingArguments('out')).train()",
        ],
        [
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, num_workers=4)"),
            trained(OPTIONS.format(workers=4))
            + "train_loader = DataLoader(data, 8, num_workers=args.workers)",
            loop("pass", after="data = TensorDataset(x, y)\ntrain_loader = DataLoader(data, 8)"),
            loop("pass", after="test_loader = DataLoader(data, batch_size=8)"),
            TRAINER + "Trainer(None, TrainingArguments('out', dataloader_num_workers=4)).train()",
        ],
    ),
    "preprocessing-workers": (
        [trained(MAP.format(more="")), trained(MAP.format(more=", num_proc=1"))],
        [
            trained(MAP.format(more=", num_proc=8")),
            trained(MAP.format(more=", batch_size=-1")),
            trained(MAP.format(more=", num_proc=os.cpu_count()")),
            trained("import datasets\nnames = list(map(str, [1]))"),
            trained("import datasets\nframe.map(str)"),
        ],
    ),
    "fixed-learning-rate": (
        [trained(OPTIONS.format(workers=4) + "optimizer = torch.optim.AdamW(p, lr=1e-3)")],
        [
            trained(OPTIONS.format(workers=4) + "optimizer = torch.optim.AdamW(p, lr=args.lr)"),
            trained("import torch\noptimizer = torch.optim.AdamW(p, lr=1e-3)"),
            trained(OPTIONS.format(workers=4)
                    + "optimizer = torch.optim.SGD(p, lr=1e-3 * args.batch_size)"),
        ],
    ),
}  # fmt: skip
