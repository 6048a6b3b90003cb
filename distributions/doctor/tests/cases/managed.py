import textwrap

from distributions.doctor.tests.scripts import loop

XLA = "import torch_xla.core.xla_model as xm\n"
TRAINER = "from transformers import Trainer, TrainingArguments\n"
MAIN = "\ndef main():\n    Trainer(None).train()\nif __name__ == '__main__':\n    main()\n"
TF = "import tensorflow as tf\n"
STEP = textwrap.dedent("""
    {decorator}
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = compute(model(inputs), labels)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    for inputs, labels in data:
        step(inputs, labels)
    """)
FIT = "model = tf.keras.Sequential()\nmodel.fit(x, y)\n"
CASES = {
    "xla-device": (
        [
            loop("pass", after="model.cuda()"),
            loop("pass", after="device = torch.device('cuda')"),
            loop("pass", after="device = torch.device('cuda' if ok else 'cpu')"),
            loop("pass", after="model = model.to('cuda:0')"),
        ],
        [
            loop("pass", after="device = torch.device('cpu')"),
            XLA + loop("pass", after="device = xm.xla_device()"),
            XLA + loop("pass", after="if use_xla:\n    d = xm.xla_device()\nelse:\n"
                       "    d = torch.device('cuda')"),
            loop("pass", after="ready = torch.cuda.is_available()"),
            "from accelerate import Accelerator\n" + loop("pass", after="model.cuda()"),
        ],
    ),
    "xla-amp": (
        [loop("pass", after="scaler = torch.cuda.amp.GradScaler()")],
        [XLA + "from torch_xla.amp import GradScaler\n" + loop("pass", after="s = GradScaler()")],
    ),
    "xla-mark-step": (
        [loop("pass"), XLA + loop("xm.optimizer_step(optimizer)")],
        [
            XLA + loop("xm.mark_step()"),
            XLA + loop("xm.optimizer_step(optimizer, barrier=True)"),
            XLA + "from torch_xla.distributed.parallel_loader import MpDeviceLoader\n"
            + loop("pass", after="train(model, MpDeviceLoader(loader, device))"),
            "import torch_xla\n" + loop("torch_xla.sync()"),
            "from accelerate import Accelerator\n" + loop("pass"),
            TRAINER + "Trainer(None, TrainingArguments('out')).train()",
        ],
    ),
    "xla-optimizer-step": (
        [XLA + loop("xm.mark_step()")],
        [
            XLA + loop("xm.mark_step()").replace("optimizer.step()",
                                                 "xm.optimizer_step(optimizer)"),
            XLA + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
            + loop("xm.mark_step()", after="model = DDP(model)"),
            XLA + loop("if plain is None:\n    xm.optimizer_step(optimizer)"),
            XLA + loop("xm.all_reduce('sum', gradients)"),
            XLA + loop("scheduler.step()").replace("optimizer.step()",
                                                   "xm.optimizer_step(optimizer)"),
        ],
    ),
    "xla-save": (
        [loop("pass", after="torch.save(model.state_dict(), 'm.pt')")],
        [
            XLA + loop("pass", after="xm.save(model.state_dict(), 'm.pt')"),
            loop("pass", after="torch.save(model.cpu().state_dict(), 'm.pt')"),
            "import torch\ntorch.save({}, 'x.pt')\n",
        ],
    ),
    "xla-entry": (
        [TRAINER + MAIN],
        [
            TRAINER + "def _mp_fn(index):\n    main()\n" + MAIN,
            TRAINER + "from other import _mp_fn\n_mp_fn\n" + MAIN,
            TRAINER + "def build():\n    return Trainer(None)\n",
            "import lightning, torch_xla\n" + TRAINER + MAIN,
        ],
    ),
    "tf-eager-step": (
        [TF + STEP.format(decorator="")],
        [
            TF + STEP.format(decorator="@tf.function"),
            TF + STEP.format(decorator="@tf.function(jit_compile=True)"),
            TF + STEP.format(decorator="") + "step = tf.function(step)\n",
            TF
            + STEP.format(decorator="").replace("    step(inputs, labels)\n", "    all(inputs)\n")
            + "@tf.function\ndef all(inputs):\n    strategy.run(step, args=(inputs,))\n",
        ],
    ),
    "tf-eager-switch": (
        [
            TF + FIT + "model.compile(run_eagerly=True)",
            TF + FIT + "tf.config.run_functions_eagerly(True)",
        ],
        [
            TF + FIT + "model.compile(run_eagerly=False)",
            TF + FIT + "tf.config.run_functions_eagerly(False)",
            TF + FIT + "if args.debug:\n    tf.config.run_functions_eagerly(True)",
        ],
    ),
    "tf-several-nodes": (
        [TF + FIT + "strategy = tf.distribute.MultiWorkerMirroredStrategy()"],
        [
            TF + FIT + "import os\nos.environ['TF_CONFIG'] = '{}'\n"
            "strategy = tf.distribute.MultiWorkerMirroredStrategy()",
            TF + FIT + "strategy = tf.distribute.MirroredStrategy()",
        ],
    ),
}  # fmt: skip
