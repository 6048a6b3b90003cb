"""``report``: a trial's report or a workload's history, saved and found again."""

import pytest


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--history"], 2, "compilegate report WORKLOAD --history"),
        (["bert-docs", "--trial", "0mabc123", "--history"], 2, "report WORKLOAD --history"),
        (["nobody", "--history"], 1, "nobody has no history"),
        (["bert-docs", "--trial", "00000000"], 1,
         "there is no decision of bert-docs trial 00000000 yet"),
        ([], 1, "there is no decision yet"),
    ],
)  # fmt: skip
def test_what_there_is_no_report_of_is_an_error(words, code, said, invoke):
    result = invoke("report", *words)

    assert code == result.exit_code
    assert said in result.stderr


def test_without_a_local_cloud_the_history_saved_before_is_named(invoke, providers, registered):
    providers.local_cloud = registered
    first = invoke("report", "bert-docs", "--history", "--local")
    providers.local_cloud = None

    again = invoke("report", "bert-docs", "--history", "--local")
    other = invoke("report", "other", "--history", "--local")

    assert (first.stdout, 0) == (again.stdout, again.exit_code)
    assert "this report was saved before" in again.stderr
    assert 1 == other.exit_code


def test_without_a_local_cloud_the_saved_reports_are_looked_through(tmp_path, invoke):
    for trial in ("0aaaaaaa", "0bbbbbbb"):
        folder = tmp_path / "compilegate-reports" / f"demo-lm-{trial}"
        folder.mkdir(parents=True)
        (folder / "report.html").write_text("<html>")

    newest = invoke("report", "demo-lm", "--local")
    older = invoke("report", "--trial", "0aaaaaaa", "--local")
    none = invoke("report", "other", "--local")

    assert "compilegate-reports/demo-lm-0bbbbbbb/report.html\n" == newest.stdout
    assert "compilegate-reports/demo-lm-0aaaaaaa/report.html\n" == older.stdout
    assert (1, "") == (none.exit_code, none.stdout)
    assert "The local cloud does not run" in none.stderr
