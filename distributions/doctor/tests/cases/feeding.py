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
            loop("pass", after="data = [1]\ntrain_loader = DataLoader(data, 8, collate_fn=read)"),
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, num_workers=0)"),
            loop("pass", after="""
                def loader_of(data, **more):
                    train_loader = DataLoader(data, **more)
                    return train_loader
                loader_of(d, batch_size=8)
                """),
            loop("pass", after="""
                class Data:
                    def __init__(self, workers=0):
                        self.workers = workers
                    def train_loader(self):
                        return DataLoader(self.train_data, 8, num_workers=self.workers)
                """),
            trained(OPTIONS.format(workers=0))
            + "train_loader = DataLoader(data, 8, num_workers=args.workers)",
            TRAINER + "Trainer(None, TrainingArguments('out')).train()",
        ],
        [
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, num_workers=4)"),
            trained(OPTIONS.format(workers=4))
            + "train_loader = DataLoader(data, 8, num_workers=args.workers)",
            loop("pass", after="data = TensorDataset(x, y)\ntrain_loader = DataLoader(data, 8)"),
            loop("pass", after="data = []\ntrain_loader = DataLoader(data, 8)"),
            loop("pass", after="data = torch.arange(9)\ntrain_loader = DataLoader(data, 8)"),
            loop("pass", after="""
                def loader_of(data):
                    train_loader = DataLoader(data, 8)
                    return train_loader
                loader_of(TensorDataset(x, y))
                """),
            loop("pass", after="test_loader = DataLoader(data, batch_size=8)"),
            TRAINER + "Trainer(None, TrainingArguments('out', dataloader_num_workers=4)).train()",
        ],
    ),
    "preprocessing-workers": (
        [trained(MAP.format(more="")), trained(MAP.format(more=", num_proc=1"))],
        [
            trained(MAP.format(more=", num_proc=8")),
            trained(MAP.format(more=", batch_size=-1")),
            trained(MAP.format(more=", batch_size=len(rows)")),
            trained("def f(rows):\n    with torch.no_grad():\n        return encode(rows)\n"
                    + MAP.format(more="")),
            trained("from functools import partial\nf = partial(embed, text_encoder=encoder)\n"
                    + MAP.format(more="")),
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
