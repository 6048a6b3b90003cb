"""Property tests whose examples are expensive."""

from hypothesis import HealthCheck, settings


def at_most(examples: int) -> settings:
    """As many examples as the profile asks for, but no more than this."""
    return settings(
        max_examples=min(examples, settings.default.max_examples),
        suppress_health_check=list(HealthCheck),
    )
