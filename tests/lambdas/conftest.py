"""The bundle as it is deployed."""

import pytest

from stacks.assets import stage_bundle


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    return stage_bundle(tmp_path_factory.mktemp("bundle"))
