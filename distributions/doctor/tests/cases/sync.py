from distributions.doctor.tests.scripts import loop

TRAINER = "from transformers import Trainer, TrainingArguments\n"
LIGHTNING = """
import lightning as L
class Lit(L.LightningModule):
    def training_step(self, batch, index):
        loss = self.model(batch)
        self.log("loss", loss{more})
        return loss
"""
# A script of its own: what it makes, it trains where it is.
ALONE = """
import torch
{first}
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:
    loss = model({x}).sum()
    loss.backward()
    optimizer.step()
    print(loss.item(), loss)
"""
CASES = {
    "host-sync": (
        [
            ALONE.format(first="", x="x.cuda()"),
            ALONE.format(first="device = torch.device('cuda')", x="x.to(device)"),
            ALONE.format(first="torch.set_default_device('cuda')", x="x"),
            ALONE.format(first="from accelerate import Accelerator", x="x"),
            # what a wrapper of optimizer or scaler steps
            "import torch\nfor x in data:\n    loss = model(x)\n"
            "    loss_scaler(loss, optimizer, parameters=1)\n    seen(loss.item())",
            "import torch\nfor x in data:\n    loss = model(x.cuda())\n    loss.backward()\n"
            "    optimizer.step_and_update_lr()\n    seen(loss.item())",
            loop("total += loss.item()"),
            loop("total += float(loss)"),
            loop("predictions = outputs.argmax(1).cpu().numpy()"),
            loop("found = outputs.argmax(1).tolist()"),
            loop("found = outputs.argmax(1).cpu()"),
            loop("if loss > 10: total += 1"),
            loop("if phase == 'train': total += loss.item()"),
            loop("if step % 1 == 0: total += loss.item()"),
            # the only step of a loop over an environment
            "import torch\nfor step in range(9):\n    act().cuda()\n    if step % 4 == 0:\n"
            "        loss.backward()\n        optimizer.step()\n        total += loss.item()",
            loop("if (step + 1) % args.accumulation_steps == 0: total += loss.item()"),
            loop("keep(loss)", after="def keep(loss):\n    history.append(loss.item())"),
            loop("if accelerator.is_main_process: total += loss.item()"),
            loop("if batch is not None: total += loss.item()"),
            loop("value = loss.item() if True else 0"),
            loop("def closure():\n    history.append(loss.item())\n    return loss\n"
                 "optimizer.step(closure)"),
            "import lightning as L\n"
            "class Lit(L.LightningModule):\n"
            "    def training_step(self, batch, index):\n"
            "        loss = self.model(batch)\n"
            "        self.history.append(loss.item())\n"
            "        return loss\n",
            """
import torch
log_interval = 1
while True:
    logits, loss = model(X, Y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    if iter_num % log_interval == 0 and master_process:
        print(loss.item())
""",
        ],
        [
            ALONE.format(first="torch.cuda.manual_seed(1)", x="x"),
            "import torch\nfor x in data:\n    loss = model(x)\n"
            "    scaler(loss, 2)\n    seen(loss.item())",
            loop("if isinstance(outputs, list): total += loss.item()"),
            loop("if opt.noise > 0: total += loss.item()"),
            loop("if visible and not held_out: total += loss.item()"),
            loop("keep(loss)", after="def keep(loss):\n    if not store.path:\n        return\n"
                 "    history.append(loss.item())"),
            loop("keep(loss)", after="def keep(loss):\n    if fine(loss):\n        return\n"
                 "    raise ValueError(loss.item())"),
            "import torch\nclass Run(torch.nn.Module):\n    def __init__(self):\n"
            "        self.register_buffer('steps', torch.zeros(1))\n    def step(self):\n"
            "        for x in self.data:\n            self.model(x).sum().backward()\n"
            "            self.optimizer.step()\n            seen(int(self.steps.item()))",
            loop("generator = data_generator(args)\nif generator().index > 3: total += 1"),
            loop("if divisible_by(step, 100): total += loss.item()"),
            loop("if args.noisy: total += loss.item()"),
            loop("if cfg.TRAIN.NOISY: total += loss.item()"),
            loop("if config['noisy']: total += loss.item()"),
            loop("if phase == 'val': total += loss.item()"),
            loop("if phase == Phase.VAL: total += loss.item()"),
            loop("if total < best_loss: total += loss.item()"),
            loop("if step % 5 == 0:\n    other.backward()\n    total += loss.item()"),
            # of a tensor on the device it would be an error
            loop("found = outputs.argmax(1).numpy()"),
            loop("if rank == 0 and current_time - last_time > 60: total += loss.item()"),
            loop("if (step + 1) % 9 == 0 or (step + 1) == 99: total += loss.item()"),
            loop("total += loss.detach()"),
            loop("if step % 100 == 0: total += loss.item()"),
            loop("if step % args.log_every == 0:\n    total += loss.item()"),
            loop("if not step % log_every:\n    total += loss.item()"),
            loop("if step % log_every:\n    continue\ntotal += loss.item()"),
            loop("if should_log(step):\n    total += loss.item()"),
            loop("if (step + 1) % (args.accumulation_steps * args.log_every) == 0:\n"
                 "    total += loss.item()"),
            loop("value = loss.item() if step % 50 == 0 else None"),
            loop("number = np.mean([1, 2]).item()"),
            loop("chosen = torch.randint(0, 9, (1,)).item()"),
            loop("count = int(outputs.shape[0]) + outputs.size(0) + len(outputs)"),
            loop("if loss is None: break"),
            loop("if is_wrapped_module(model) and has_model(args):\n    total += 1"),
            loop("ready = bool(build_model(args))"),
            "import torch\nfor optimizer in optimizers:\n    optimizer.step()\n"
            "    print(loss.item())",
            loop("for key, value in {'a': 1}.items(): total += value"),
            loop("rate = float(optimizer.param_groups[0]['lr'])"),
            loop("pass").replace("    return total", "    return total.item()"),
            loop("if step % 500 == 0:\n    check(model)", after="""
                @torch.no_grad()
                def check(model):
                    return [model(x).item() for x in held_out]
                """),
            loop("if step % 10 == 0:\n    report(loss)",
                 after="def report(loss):\n    print(loss.item())"),
            loop("pass", after="""
                def evaluate(model, loader):
                    total = 0
                    for inputs, labels in loader:
                        total += criterion(model(inputs), labels).item()
                    return total
                """),
            loop("pass", after="""
                for epoch in range(3):
                    train(model, loader, optimizer, criterion, device, args, 0, 0, 0)
                    optimizer_scheduler.step()
                    print(loss.item())
                """),
            # gradients alone, as in tests of gradients, are no training loop
            "import torch\nfor _ in range(3):\n    y = f(x)\n    y.backward()\n    print(y.item())",
        ],
    ),
    "logged-tensor": (
        [
            loop("print(loss)"),
            "import torch\n"
            "def train():\n    loss = model(x.cuda())\n    loss.backward()\n    optimizer.step()\n"
            "    return loss / len(x)\n"
            "for epoch in range(9):\n    loss = train()\n    print(loss)",
            loop("print(f'loss {loss:.3f}')"),
            loop("print('loss', outputs.mean())"),
            loop("logger.info('loss %s', loss)"),
            loop("wandb.log({'loss': loss})"),
            loop("writer.add_scalar('loss', loss, step)"),
            loop("bar.set_postfix(loss=loss)"),
            LIGHTNING.format(more=", prog_bar=True"),
            TRAINER + "Trainer(None, TrainingArguments('out', logging_steps=1)).train()",
        ],
        [
            ALONE.format(first="", x="x").replace("loss.item(), ", ""),
            "import torch\n"
            "def train():\n    loss = model(x.cuda())\n    loss.backward()\n    optimizer.step()\n"
            "    return float(loss) / len(x)\n"
            "for epoch in range(9):\n    loss = train()\n    print(loss)",
            LIGHTNING.format(more=""),
            LIGHTNING.format(more=", prog_bar=False"),
            loop("print(step)"),
            loop("scores = log(outputs)"),
            loop("if opt.noise > 0: print(loss)"),
            loop("if step % 100 == 0: print(loss)"),
            loop("print(f'{outputs.shape} {loss.dtype}')"),
            loop("total = torch.log(loss)"),
            loop("total = loss.log()"),
            loop("print(time.time())"),
            TRAINER + "Trainer(None, TrainingArguments('out', logging_steps=100)).train()",
            TRAINER + "Trainer(None, TrainingArguments('out', logging_steps=1,"
            " logging_strategy='epoch')).train()",
        ],
    ),
    "device-wait": (
        [loop("torch.cuda.synchronize()"), loop("torch.cuda.empty_cache()")],
        [
            loop("if step % 100 == 0: torch.cuda.synchronize()"),
            loop("pass", after="torch.cuda.synchronize()"),
            loop("accelerator.synchronize()"),
        ],
    ),
}  # fmt: skip
