"""A Hugging Face script that knows nothing of Compilegate: its Trainer's own arguments, no more."""

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)

(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
torch.manual_seed(arguments.seed)


class Rows(Dataset):
    """Word numbers, the second half of every odd row padding."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        seen = [1] * 8 if index % 2 == 0 else [1] * 4 + [0] * 4
        words = torch.arange(8) + index
        return {"input_ids": words, "attention_mask": torch.tensor(seen), "labels": index % 2}


def accuracy(prediction):
    """Share of rows classified right."""
    return {"accuracy": (prediction.predictions.argmax(1) == prediction.label_ids).mean().item()}


model = BertForSequenceClassification(
    BertConfig(
        vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=8,
    )
)  # fmt: skip
trainer = Trainer(
    model=model, args=arguments, train_dataset=Rows(), eval_dataset=Rows(), compute_metrics=accuracy
)
trainer.train()
trainer.evaluate()
