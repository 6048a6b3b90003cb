"""Where a model's graph broke: TorchDynamo tells its log, and nobody has to read it."""

import logging
import re

LOGGERS = tuple(
    f"torch._dynamo.{module}.__graph_breaks" for module in ("symbolic_convert", "convert_frame")
)
PLACE = re.compile(r"in user code at (.+?:\d+)")
REASON_LENGTH = 200


class GraphBreaks(logging.Filter):
    """Counts graph breaks by place and keeps them off the log, unless that was asked for."""

    def __init__(self):
        super().__init__()
        self._found = {}
        self._shown = {}
        for name in LOGGERS:
            log = logging.getLogger(name)
            self._shown[name] = log.isEnabledFor(logging.DEBUG)
            log.setLevel(logging.DEBUG)
            log.addFilter(self)

    def filter(self, record):
        """Take a break in; called by ``logging`` with every record."""
        text = record.getMessage()
        place = PLACE.search(text)
        if place:
            known = self._found.setdefault(place[1], {"place": place[1], "count": 0, "reason": ""})
            known["count"] += 1
            known["reason"] = known["reason"] or _reason(text)
        return self._shown.get(record.name, True)

    def found(self, most):
        """The places with most breaks."""
        return sorted(self._found.values(), key=lambda one: -one["count"])[:most]


def _reason(text):
    """The sentence of a break's explanation that names it."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    named = [line for line in lines if not line.startswith("Graph Break Reason")]
    return (named or lines or [text])[0][:REASON_LENGTH]
