"""Complete CreateTrainingJob requests, as SageMaker gets them."""

from compilegate.domain.request.build import quality_request, speed_request
from compilegate.domain.request.context import JobContext

__all__ = ["JobContext", "quality_request", "speed_request"]
