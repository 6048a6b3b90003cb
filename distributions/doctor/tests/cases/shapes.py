from distributions.doctor.tests.scripts import loop, trained

TOKENIZE = """
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments
tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
def tokenize(examples):
    return tokenizer(examples["text"], truncation=True{padding})
"""
TF = "import tensorflow as tf\nmodel = tf.keras.Sequential()\n"
COLLATE = """
def collate(batch):
    {body}
train_loader = DataLoader(d, batch_size=8, collate_fn=collate)
"""
PADS = (
    "return pad_sequence(batch)",
    "longest = max(len(item) for item in batch)",
    "longest = max([item.size(0) for item in batch])",
)
CASES = {
    "dynamic-padding": (
        [
            trained(TOKENIZE.format(padding=", padding='longest'")),
            trained(TOKENIZE.format(padding=", padding=True")),
            trained(TOKENIZE.format(padding="") + "collate = DataCollatorWithPadding(tokenizer)"),
            TOKENIZE.format(padding="") + "arguments = TrainingArguments(group_by_length=True)\n"
            "Trainer(None, arguments).train()",
            trained("""
                import argparse
                parser = argparse.ArgumentParser()
                parser.add_argument("--pad_to_max_length", action="store_true")
                args = parser.parse_args()
                """ + TOKENIZE.format(padding="").replace("\n", "\n" + " " * 16) + """
                if args.pad_to_max_length:
                    collate = None
                else:
                    collate = DataCollatorWithPadding(tokenizer)
                """),
            TF + "train = tf.data.Dataset.range(9).padded_batch(4)\nmodel.fit(train)",
            *(trained(COLLATE.format(body=body)) for body in PADS),
            trained(COLLATE.format(body=PADS[0]).replace("=collate", "=lambda b: collate(b)")),
            trained("def collate(rows):\n    return pad_sequence(rows)\n"
                    "put_together = collate\nTrainer(m, data_collator=put_together)"),
            trained("class Collate:\n    def __call__(self, batch):\n"
                    "        return pad_sequence(batch)\n"
                    "train_loader = DataLoader(d, 8, collate_fn=Collate())"),
        ],
        [
            trained(TOKENIZE.format(padding=", padding='longest'").replace(
                "tokenizer(examples", "[tokenizer(text").replace(
                "text[\"text\"]", "text").replace("'longest')", "'longest') for text in rows]")),
            trained(COLLATE.format(body="return torch.stack(batch)")),
            trained(COLLATE.format(body="return best(batch, max(batch))")),
            trained(COLLATE.format(body="return pad(pad_sequence(batch), max_length=9)")),
            trained(COLLATE.format(body=PADS[0]).replace("train_loader", "test_loader")),
            trained(TOKENIZE.format(padding=", padding='longest'")
                    .replace("    return", "    with torch.no_grad(): return")),
            trained(TOKENIZE.format(padding=", padding='max_length', max_length=128")
                    + "collate = DataCollatorWithPadding(tokenizer)"),
            trained(TOKENIZE.format(padding=", padding=False")),
            trained(TOKENIZE.format(padding="")
                    + "collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=64)"),
            trained(TOKENIZE.format(padding=", padding='longest'")
                    .replace("def tokenize", "def predict")),
            trained("""
                import argparse
                parser = argparse.ArgumentParser()
                parser.add_argument("--pad_to_max_length", default=True)
                args = parser.parse_args()
                """ + TOKENIZE.format(padding="").replace("\n", "\n" + " " * 16) + """
                if args.pad_to_max_length:
                    collate = None
                else:
                    collate = DataCollatorWithPadding(tokenizer)
                """),
            trained("conv = nn.Conv1d(4, 4, 3, padding=True)"),
            TF + "train = tf.data.Dataset.range(9).padded_batch(4, padded_shapes=[8])\n"
            "model.fit(train)",
        ],
    ),
    "ragged-last-batch": (
        [
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, shuffle=True)"),
            loop("pass", after="loader = DataLoader(data, 8, True)"),
            loop("pass", after="train_loader = DataLoader(MNIST('x'), batch_size=64)"),
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, drop_last=False)"),
            loop("pass", after="""
                options = {"batch_size": 8}
                options.update({"pin_memory": True})
                train_loader = DataLoader(data, **options)
                """),
            loop("pass", after="""
                more = dict(pin_memory=True) if cuda else {}
                more.update(num_workers=4)
                train_loader = DataLoader(data, 8, **more)
                """),
            loop("pass", after="train_loader = DataLoader(d, 8)\nfirst = next(iter(train_loader))\n"
                 "for batch in train_loader: pass"),
            "from transformers import Trainer, TrainingArguments\n"
            "Trainer(None, TrainingArguments('out')).train()",
            TF + "train = tf.data.Dataset.range(9).batch(4)\nmodel.fit(train)",
        ],
        [
            loop("pass", after="train_loader = DataLoader(data, 8, shuffle=True, drop_last=True)"),
            loop("pass", after="eval_loader = DataLoader(data, batch_size=8)"),
            loop("pass", after="train_loader = DataLoader(MNIST('x'), batch_size=50)"),
            loop("pass", after="train_loader = DataLoader(data, shuffle=True)"),
            loop("pass", after="if isinstance(data, IterableDataset):\n"
                 "    train_loader = DataLoader(data, batch_size=8)"),
            loop("pass", after="""
                def draw(net):
                    net.eval()
                    for inputs in DataLoader(data, 8, shuffle=True):
                        net(inputs)
                """),
            loop("pass", after="train_loader = DataLoader(d, 8)\nx, y = next(iter(train_loader))"),
            loop("pass", after="train_loader = DataLoader(RandomDataset(32, 64), batch_size=2)"),
            loop("pass", after="draws = RandomSampler(d, num_samples=99)\n"
                 "train_loader = DataLoader(d, 8, sampler=RandomSampler(d, num_samples=99))"),
            loop("pass", after="""
                more = dict(drop_last=True) if whole else {}
                train_loader = DataLoader(data, 8, **more)
                """),
            loop("pass", after="""
                def loader_of(data, **more):
                    train_loader = DataLoader(data, **more)
                    return train_loader
                loader_of(d, drop_last=True)
                """),
            loop("pass", after="train_loader = DataLoader(test_data, batch_size=8)"),
            loop("pass", after="train_loader = DataLoader(data, batch_sampler=sampler)"),
            loop("pass", after="train_loader = DataLoader(data, batch_size=1, shuffle=True)"),
            loop("pass", after="train_loader = DataLoader(data, **unknown())"),
            loop("pass", after="""
                options = {"batch_size": 8}
                options["drop_last"] = True
                train_loader = DataLoader(data, **options)
                """),
            "from transformers import Trainer, TrainingArguments\n"
            "Trainer(None, TrainingArguments('out', dataloader_drop_last=True)).train()",
            "from transformers import Trainer, TrainingArguments\n"
            "Trainer(None, TrainingArguments('out', **settings)).train()",
            TF + "train = tf.data.Dataset.range(9).batch(4, drop_remainder=True)\n"
            "model.fit(train)",
        ],
    ),
}  # fmt: skip
