"""Starts a training script on every GPU where the managed compiler's image has no launcher.

The images with PyTorch 1.10.2 and before are launched by ``torch_xla.distributed.sm_dist``, which
is given the script as ``--training_script`` and hands it every other argument. Source:
awsdocs/amazon-sagemaker-developer-guide, training-compiler-enable-pytorch.md.
"""

import subprocess
import sys


def main(arguments):
    """Run the launcher; its exit code is the job's."""
    command = [sys.executable, "-m", "torch_xla.distributed.sm_dist", *arguments]
    return subprocess.call(command)  # noqa: S603 — this interpreter and the job's own arguments


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
