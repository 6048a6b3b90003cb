"""How busy and how full the GPU is, read once a second beside the training.

NVML is NVIDIA's own interface of the driver. It is read without CUDA, so that no sample waits for
the GPU or disturbs a graph that is being captured. Source: NVML API reference,
nvmlDeviceGetUtilizationRates (share of the past sample period in which a kernel ran) and
nvmlDeviceGetMemoryInfo.
"""

import ctypes
import os
import threading

EVERY_SECONDS = 1.0
SUCCESS = 0


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Nvml:
    """One GPU's utilization (0 to 1) and memory in use (bytes); raises OSError without a driver."""

    def __init__(self, uuid=None, index=0, library=None):
        self._library = library or ctypes.CDLL("libnvidia-ml.so.1")
        self._device = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        place = ctypes.byref(self._device)
        if uuid:
            self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), place)
        else:
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), place)

    def __call__(self):
        """(utilization, bytes in use) now."""
        busy, memory = _Utilization(), _Memory()
        self._call("nvmlDeviceGetUtilizationRates", self._device, ctypes.byref(busy))
        self._call("nvmlDeviceGetMemoryInfo", self._device, ctypes.byref(memory))
        return busy.gpu / 100, memory.used

    def _call(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code != SUCCESS:
            raise OSError(f"{name} returned {code}")


def nvml_of(torch):
    """The reader of the GPU that torch uses; raises OSError where there is none."""
    number = torch.cuda.current_device()
    uuid = getattr(torch.cuda.get_device_properties(number), "uuid", None)
    if uuid is not None:
        return Nvml(uuid=f"GPU-{uuid}")
    shown = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    name = shown[number] if number < len(shown) and shown[number] else str(number)
    return Nvml(index=int(name)) if name.isdigit() else Nvml(uuid=name)


class Sampler:
    """Samples in a thread until it is closed; what cannot be read is None with its reason."""

    def __init__(self, read=None, reason="no NVIDIA GPU", every_seconds=EVERY_SECONDS):
        self._read, self._reason = read, reason
        self._every = every_seconds
        self._count = self._busy = self._most = 0
        self._stop = threading.Event()
        self._thread = None

    def start(self):
        """Begin to sample."""
        if self._read is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="compilegate-gpu")
            self._thread.start()

    def _run(self):
        while not self._stop.wait(self._every):
            try:
                busy, used = self._read()
            except OSError as error:
                self._reason, self._read = str(error), None
                return
            self._count, self._busy = self._count + 1, self._busy + busy
            self._most = max(self._most, used)

    def figures(self):
        """Mean utilization and largest memory over the samples so far."""
        count = self._count
        return {
            "samples": count,
            "utilization": round(self._busy / count, 4) if count else None,
            "memory_gib": round(self._most / 2**30, 3) if count else None,
            "reason": None if count else self._reason if self._read is None else "no sample yet",
        }

    def close(self):
        """Stop sampling."""
        self._stop.set()


def sampler_for(device):
    """The sampler of a job's device."""
    if not device.is_gpu:
        return Sampler()
    try:
        return Sampler(nvml_of(device.torch))
    except (OSError, AttributeError, ValueError) as error:
        return Sampler(reason=f"NVML cannot be read: {error}")
