"""A Hugging Face Trainer with arguments of its own in a dataclass."""

from dataclasses import dataclass, field

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)


@dataclass
class ModelArguments:
    """What is trained."""

    model_name_or_path: str = field(default="tiny-bert", metadata={"help": "Model"})
    width: int = 16


class Sentences(Dataset):
    """Word numbers whose parity is the label, the second half of every odd row padding."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        seen = [1] * 8 if index % 2 == 0 else [1] * 4 + [0] * 4
        words = torch.arange(8) + index
        return {"input_ids": words, "attention_mask": torch.tensor(seen), "labels": index % 2}


def compute_metrics(prediction):
    """Share of sentences classified right."""
    right = prediction.predictions.argmax(1) == prediction.label_ids
    return {"accuracy": right.mean().item()}


def main():
    """Train, then evaluate."""
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    own, training = parser.parse_args_into_dataclasses()
    torch.manual_seed(training.seed)
    config = BertConfig(
        vocab_size=32, hidden_size=own.width, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=8,
    )  # fmt: skip
    trainer = Trainer(
        model=BertForSequenceClassification(config), args=training, train_dataset=Sentences(),
        eval_dataset=Sentences(), compute_metrics=compute_metrics,
    )  # fmt: skip
    trainer.train()
    if training.do_eval:
        trainer.evaluate()


if __name__ == "__main__":
    main()
