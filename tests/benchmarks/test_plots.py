import pytest

from benchmarks.decision.cells import Cell, run

pytestmark = pytest.mark.slow
PORTFOLIOS = ("mixed", "boundary_quality", "boundary_speed", "all_good", "regressing")


@pytest.fixture(scope="module")
def draw_all():
    from benchmarks.decision import plots  # noqa: PLC0415 - only these tests wait for matplotlib

    return plots.draw_all


@pytest.fixture(scope="module")
def cells():
    rules = ("hybrid", "charitable")
    return [
        run(Cell(portfolio, workloads=4, rules=rules), 1, lambda _: None)
        for portfolio in PORTFOLIOS
    ]


def test_every_chart_is_drawn_and_the_same_figures_give_the_same_file(draw_all, cells, tmp_path):
    first = draw_all(cells, tmp_path / "one")
    again = draw_all(cells, tmp_path / "two")
    assert 5 == len(first)
    for one, two in zip(first, again, strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_a_chart_without_its_cell_is_left_out_and_named(draw_all, cells, tmp_path, capsys):
    drawn = draw_all(cells[:1], tmp_path)
    assert ["decision-gpu-hours.svg"] == [path.name for path in drawn]
    assert "no chart of power" in capsys.readouterr().err
