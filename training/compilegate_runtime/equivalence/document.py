"""The document of a check: what was compared, what was not, and in which class of arithmetic."""

import platform

SCHEMA = 1


class Document:
    """Gathers figures part by part."""

    def __init__(self, check, weights, limit_seconds):
        self._made = {
            "schema": SCHEMA, "check": check, "weights": weights, "class": None,
            "parts": [], "unseen": [], "seconds": 0.0, "limit_seconds": limit_seconds,
        }  # fmt: skip

    def belongs_to(self, torch, subject):
        """Note framework, device and precision, for which bounds and chances are known."""
        weight = next(subject.model.parameters(), torch.zeros(0))
        device, name = weight.device, weight.device.type
        if device.type == "cpu":
            name += f" {platform.machine()}"
        if device.type == "cuda":
            name += " {}.{}".format(*torch.cuda.get_device_capability(device))
        kinds = {one.dtype for one in subject.model.parameters()}
        version = ".".join(torch.__version__.split(".")[:2])
        self._made["class"] = {
            "framework": f"pytorch {version}", "device": name,
            "precision": "fp64" if torch.float64 in kinds else subject.precision,
        }  # fmt: skip

    def add(self, part):
        """Note the figures of a part."""
        self._made["parts"].append(part)

    def has(self, part):
        """Whether there are figures of a part."""
        return any(one["part"] == part for one in self._made["parts"])

    def leave_out(self, part, arithmetic, reason):
        """Note what of a part was not looked at."""
        self._made["unseen"].append({
            "part": part, "arithmetic": arithmetic, "code": reason.code, "share": reason.share,
            "detail": reason.detail,
        })  # fmt: skip

    def finished(self, seconds):
        """The document, as JSON's types."""
        return {**self._made, "seconds": round(seconds, 2)}
