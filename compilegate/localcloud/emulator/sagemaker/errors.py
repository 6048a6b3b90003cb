"""How the SageMaker service refuses a request, and how a job fails."""

from __future__ import annotations


class ApiError(Exception):
    """A refused API call, as it goes over the wire."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


class JobFailedError(Exception):
    """A training job cannot go on; the text is its FailureReason, class of fault first."""
