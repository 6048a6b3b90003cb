"""Writes a Stable Diffusion in miniature, its parts untrained, into the folder named last."""

import json
import sys
from pathlib import Path

from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel

SIGNS = ("<|startoftext|>", "<|endoftext|>")


def main(folder):
    """Save every part where diffusers looks for it."""
    UNet2DConditionModel(
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=8,
        cross_attention_dim=16,
        attention_head_dim=8,
    ).save_pretrained(folder / "unet")
    AutoencoderKL(
        latent_channels=4,
        block_out_channels=(8, 8, 8, 8),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        norm_num_groups=4,
    ).save_pretrained(folder / "vae")
    words = write_tokenizer(folder / "tokenizer")
    CLIPTextModel(
        CLIPTextConfig(
            vocab_size=words,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=16,
            bos_token_id=words - 2,
            eos_token_id=words - 1,
        )
    ).save_pretrained(folder / "text_encoder")


def write_tokenizer(folder):
    """A tokenizer of single characters; returns how many it knows."""
    folder.mkdir(parents=True)
    characters = [chr(number) for number in range(33, 127)]
    words = [*characters, *(character + "</w>" for character in characters), *SIGNS]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    settings = {
        "tokenizer_class": "CLIPTokenizer", "model_max_length": 16, "bos_token": SIGNS[0],
        "eos_token": SIGNS[1], "pad_token": SIGNS[1], "unk_token": SIGNS[1],
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(words)


if __name__ == "__main__":
    main(Path(sys.argv[-1]))
