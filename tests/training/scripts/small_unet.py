"""diffusion.py with one block a side, one of them with attention: compiled in seconds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "training"))

import diffusion
from compilegate_runtime import job

diffusion.TINY = {
    "block_out_channels": (8,),
    "down_block_types": ("CrossAttnDownBlock2D",),
    "mid_block_type": None,
    "up_block_types": ("UpBlock2D",),
    "layers_per_block": 1,
    "norm_num_groups": 4,
    "cross_attention_dim": 8,
    "attention_head_dim": 4,
}

if __name__ == "__main__":
    job.run(diffusion.train, diffusion.KNOBS)
