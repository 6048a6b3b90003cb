"""The simulated burst is the client's own behaviour against a limit that holds."""

from __future__ import annotations

import json
from dataclasses import asdict

from benchmarks import results
from benchmarks.flag_reads import BOTO3_ATTEMPTS, TokenBucket, burst
from compilegate.flags.backoff import Backoff

JOBS, PER_SECOND = 1000, 4.0  # a tenth of the measured burst, at a tenth of the limit


def test_a_bucket_gives_out_no_more_than_its_rate() -> None:
    bucket = TokenBucket(PER_SECOND)
    taken = sum(bucket.take(step / 100) for step in range(1001))

    assert PER_SECOND * 10 <= taken <= PER_SECOND * 11


def test_all_jobs_of_a_second_get_their_answer_within_the_client_s_patience() -> None:
    result = burst(JOBS, 1.0, TokenBucket(PER_SECOND), Backoff(), seed=17)

    assert (JOBS, 0) == (result.served, result.baseline)
    assert JOBS / PER_SECOND <= max(result.waited) + 2 <= Backoff().seconds


def test_boto3_alone_would_send_most_of_them_to_the_baseline() -> None:
    result = burst(JOBS, 1.0, TokenBucket(PER_SECOND), Backoff(), seed=17, attempts=BOTO3_ATTEMPTS)

    assert result.baseline > JOBS / 2


def test_patience_ends_where_the_limit_leaves_too_little() -> None:
    result = burst(JOBS, 1.0, TokenBucket(PER_SECOND / 4), Backoff(), seed=17)

    assert result.baseline > 0
    assert max(result.waited) <= Backoff().seconds


def test_what_is_on_file_was_measured_with_the_client_as_it_is() -> None:
    stored = json.loads(results.path("flag-reads").read_text())

    assert asdict(Backoff()) == stored["backoff"]
    assert [0] * len(stored["bursts"]) == [row["fell_to_baseline"] for row in stored["bursts"]]
