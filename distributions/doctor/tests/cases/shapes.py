from distributions.doctor.tests.scripts import loop, trained

TOKENIZE = """
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments
tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
def tokenize(examples):
    return tokenizer(examples["text"], truncation=True{padding})
"""
TF = "import tensorflow as tf\nmodel = tf.keras.Sequential()\n"
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
        ],
        [
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
            loop("pass", after="train_loader = DataLoader(data, batch_size=8, drop_last=False)"),
            loop("pass", after="""
                options = {"batch_size": 8}
                options.update({"pin_memory": True})
                train_loader = DataLoader(data, **options)
                """),
            "from transformers import Trainer, TrainingArguments\n"
            "Trainer(None, TrainingArguments('out')).train()",
            TF + "train = tf.data.Dataset.range(9).batch(4)\nmodel.fit(train)",
        ],
        [
            loop("pass", after="train_loader = DataLoader(data, 8, shuffle=True, drop_last=True)"),
            loop("pass", after="eval_loader = DataLoader(data, batch_size=8)"),
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
