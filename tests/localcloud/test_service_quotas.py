"""What Service Quotas answers: the adapter reads it as that of AWS."""

import pytest

from compilegate.adapters.sagemaker import ServiceQuotas
from compilegate.facts import quota_codes
from compilegate_localcloud.emulator.sagemaker.quotas import NO_LIMIT
from distributions.localcloud.tests.failures import set_quotas

pytestmark = pytest.mark.e2e

# On file, but no other test in this folder uses them.
KIND, NO_CODE = "ml.g5.16xlarge", "ml.g6.xlarge"


def test_service_quotas_answers_by_code_and_lists_every_type(client, cloud):
    set_quotas(cloud.state(), {KIND: 5})
    quotas = ServiceQuotas(client("service-quotas"), quota_codes)

    assert (KIND, False) in quota_codes()
    assert (NO_CODE, False) not in quota_codes()
    assert 5 == quotas.training_instances(KIND, spot=False)
    assert 5 == quotas.training_instances(KIND, spot=True)
    assert NO_LIMIT == quotas.training_instances(NO_CODE, spot=False)
    assert quotas.training_instances("ml.unknown.large", spot=False) is None
