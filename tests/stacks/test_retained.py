"""What a destroyed stack leaves behind, and why."""

KEPT = {
    "AWS::DynamoDB::Table": "the ledger is the history of every decision",
    "AWS::KMS::Key": "without it nothing in the bucket can be read",
    "AWS::Lambda::Version": "running executions call it; it goes with its function",
    "AWS::S3::Bucket": "models, evidence and reports",
}


def kept(template):
    """Types that stay when the stack is destroyed or when a resource leaves the template."""
    return {
        resource["Type"]
        for resource in template.resources.values()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }


def test_only_what_has_a_reason_to_stay_is_retained(template, changed):
    for each in (template, changed):
        assert set(KEPT) == kept(each)


def test_schedules_go_with_the_stack_and_their_group_blocks_no_next_deployment(template):
    group = template.one("AWS::Scheduler::ScheduleGroup")

    assert ("Delete", "Delete") == (group["DeletionPolicy"], group["UpdateReplacePolicy"])
