"""Where a person opens a page of the data bucket."""

from __future__ import annotations

from compilegate.domain import console
from compilegate.domain.notification import LOCAL_STAGE
from compilegate.ports import Services


def console_region(services: Services) -> str | None:
    """The region whose console shows the deployment; None for the cloud on this machine."""
    return None if services.settings.stage == LOCAL_STAGE else services.settings.region


def link_to(key: str, services: Services) -> str | None:
    """An HTTPS link to an object, for who may read the bucket; None on this machine."""
    region = console_region(services)
    return None if region is None else console.s3_object(region, services.store.bucket, key)
