from distributions.doctor.tests.scripts import loop, trained

TRAINER = "from transformers import Trainer, TrainingArguments\n"
OPTION = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--profile", action="store_true")
args = p.parse_args()
"""
CASES = {
    "debugging-on": (
        [
            trained("import torch\ntorch.autograd.set_detect_anomaly(True)"),
            trained("import torch\nwith torch.autograd.detect_anomaly():\n    run()"),
            trained("import torch\nwith torch.profiler.profile() as p:\n    run()"),
            trained("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'"),
            trained("import smdebug.pytorch as smd\nhook = smd.Hook(out_dir='x')"),
            trained("import lightning\nlightning.Trainer(detect_anomaly=True)"),
            TRAINER + "Trainer(None, TrainingArguments('out', debug='underflow_overflow')).train()",
        ],
        [
            trained("import torch\ntorch.autograd.set_detect_anomaly(False)"),
            trained(OPTION + "import torch\nif args.profile:\n"
                    "    torch.autograd.set_detect_anomaly(True)"),
            trained("import torch\n"
                    "with torch.profiler.profile(schedule=torch.profiler.schedule()) as p:\n"
                    "    run()"),
            trained(OPTION + "import torch\n"
                    "with torch.autograd.profiler.profile(enabled=args.profile):\n    run()"),
            "import torch\nwith torch.profiler.profile() as p:\n    measure()",
        ],
    ),
    "frequent-checkpoints": (
        [
            loop("torch.save(model.state_dict(), 'm.pt')"),
            loop("accelerator.save_state('out')"),
            TRAINER + "Trainer(None, TrainingArguments('out', save_steps=10)).train()",
        ],
        [
            loop("if step % 500 == 0: torch.save(model.state_dict(), 'm.pt')"),
            loop("keep(model)", after="def keep(model):\n    if not store.path:\n        return\n"
                 "    torch.save(model.state_dict(), 'm.pt')"),
            loop("pass", after="torch.save(model.state_dict(), 'm.pt')"),
            loop("torchvision.utils.save_image(outputs, 'x.png')"),
            TRAINER + "Trainer(None, TrainingArguments('out', save_steps=500)).train()",
            TRAINER + "Trainer(None, TrainingArguments('out', save_steps=10,"
            " save_strategy='epoch')).train()",
        ],
    ),
    "frequent-evaluation": (
        [
            loop("check(model)", after="""
                @torch.no_grad()
                def check(model):
                    for inputs in held_out:
                        model(inputs)
                """),
            TRAINER + "Trainer(None, TrainingArguments('out', eval_strategy='steps',"
            " eval_steps=5)).train()",
        ],
        [
            loop("share_out(loss)", after="""
                @torch.no_grad()
                def share_out(out):
                    for row in range(3):
                        out = out / row
                """),
            loop("if step % 500 == 0: check(model)", after="""
                @torch.no_grad()
                def check(model):
                    for inputs in held_out:
                        model(inputs)
                """),
            loop("average(model)", after="""
                @torch.no_grad()
                def average(model):
                    ema.update(model)
                """),
            TRAINER + "Trainer(None, TrainingArguments('out', eval_steps=5)).train()",
        ],
    ),
}  # fmt: skip
