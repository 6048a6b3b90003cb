"""Reads the facts that a workload, or a deployment, knows better than the shipped files."""

from __future__ import annotations

import re

from compilegate.domain.compilers import NAMES
from compilegate.domain.expected import Form
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import FRAMEWORKS, FactOverrides, OwnImage

INSTANCE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
_IMAGE = Form(
    re.compile(r"[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/\S+[:@]\S+"),
    "is not an image of an ECR registry",
    "write it like 123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1",
    255,
)
MOST_USD = 1e5


def fact_overrides(fields: Fields | None) -> FactOverrides:
    """The ``facts`` section, nothing when absent."""
    if fields is None:
        return FactOverrides()
    return fields.complete(FactOverrides(prices(fields, "prices"), own_images(fields, "images")))


def prices(fields: Fields, key: str) -> dict[str, float]:
    """USD per hour of one instance, by type; raises InvalidInputError."""
    by_type = fields.mapping(key, about="USD per hour of one instance, by type")
    sound = {}
    for name, usd in by_type.items():
        number = isinstance(usd, int | float) and not isinstance(usd, bool)
        if not INSTANCE.fullmatch(name) or not number or not 0 < usd < MOST_USD:
            fields.refuse_item(
                key, name, "is not a price",
                "write an instance type and US dollars per hour, "
                'for example {"ml.g5.xlarge": 1.41}',
            )  # fmt: skip
        else:
            sound[name] = float(usd)
    return sound


def own_images(fields: Fields, key: str) -> tuple[OwnImage, ...]:
    """Images that the team brings; raises InvalidInputError."""
    return tuple(_own_image(item) for item in fields.sections(key, about="the team's own images"))


def _own_image(fields: Fields) -> OwnImage:
    image = OwnImage(
        framework=fields.choice("framework", FRAMEWORKS, about="that it contains"),
        version=fields.text("version", about="of the framework"),
        transformers=fields.text("transformers", None, about="version"),
        python=fields.text("python", None, about="as images name it"),
        compiler=fields.choice("compiler", NAMES, None, about="the one built into it"),
        uri=image_uri(fields, "uri"),
    )
    return fields.complete(image)


def image_uri(fields: Fields, key: str) -> str:
    """A training image by its form; whether it exists is a question of facts."""
    uri: str = fields.text(key, form=_IMAGE, about="in an ECR registry, with tag or digest")
    return uri
