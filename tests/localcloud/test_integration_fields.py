"""The emulator's walk over a request beside the one that planning does."""

from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import service_limits
from compilegate.facts import step_functions_fields
from compilegate_localcloud.emulator.sagemaker.validation import unsupported_fields

NAMES = sorted({name for field in step_functions_fields() for name in field.split(".")})
NAME = st.sampled_from([*NAMES, "ProfilerConfig", "Unheard"])
REQUESTS = st.recursive(
    st.just("value"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAME, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAME, REQUESTS, max_size=4))
def test_both_walks_refuse_the_same_fields(request_):
    planned = service_limits.unsupported_fields(step_functions_fields(), request_)

    assert [violation.path.rpartition(".")[2] for violation in planned] == list(
        unsupported_fields(request_)
    )
