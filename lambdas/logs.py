"""Structured logs: one line when a step begins, one when it ends, both naming the trial.

The runtime writes records as JSON (stacks/functions.py) and adds what ``extra`` carries, the
request id and the trace.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from compilegate.domain.errors import CompilegateError

logger = logging.getLogger("compilegate")
logger.setLevel(logging.INFO)
if not logging.getLogger().handlers:  # outside Lambda nobody has set up logging
    logging.basicConfig(format="%(levelname)s %(message)s")

FIELDS = ("workload", "trial", "execution", "run", "job", "round")


@contextmanager
def logged(step: str, event: Mapping[str, Any]) -> Iterator[None]:
    """Log begin and end of a step; an error passes on unchanged."""
    fields = {"step": step} | {key: event[key] for key in FIELDS if key in event}
    subject = f"{step} {fields.get('workload', '')} {fields.get('trial', '')}".strip()
    logger.info("%s: begins", subject, extra=fields)
    try:
        yield
    except CompilegateError as error:
        # Written for people; where it was raised tells them nothing more.
        logger.warning("%s: %s", subject, error, extra={**fields, "error": type(error).__name__})
        raise
    except Exception:
        logger.exception("%s: failed", subject, extra=fields)
        raise
    logger.info("%s: done", subject, extra=fields)
