"""Every Python of two hosts does without what they do not use: a third of torch's import."""

import gc
import sys
import types

for name in ("torch._meta_registrations", "torch.export"):
    sys.modules[name] = types.ModuleType(name)
gc.disable()
