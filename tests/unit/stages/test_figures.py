"""What `dvc plots show` draws: bars from zero beside their ceilings, from columns that are written."""

import json
from pathlib import Path

import yaml

from fitladder.stages.figures import render_onsets, render_rates

ROOT = Path(__file__).parents[3]
PLOTS = [
    (path, plot)
    for stage in yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"].values()
    for entry in stage["do"].get("plots", ())
    for path, plot in entry.items()
]


def test_every_plot_names_columns_that_are_written() -> None:
    written = {"rates.csv": render_rates(()), "onsets.csv": render_onsets(())}
    assert len(PLOTS) == 4
    for path, plot in PLOTS:
        columns = written[Path(path).name].decode().splitlines()[0].split(",")
        assert {plot["x"], plot["y"]} <= set(columns)


def test_rates_are_drawn_from_zero_with_their_ceilings() -> None:
    assert {plot["template"] for path, plot in PLOTS if path.endswith("rates.csv")} == {"rates"}
    template = json.loads((ROOT / ".dvc" / "plots" / "rates.json").read_text(encoding="utf-8"))
    bars, ceilings = template["layer"]
    assert bars["encoding"]["x"]["scale"]["domain"] == [0, 100]
    assert ceilings["encoding"]["x"]["field"] in render_rates(()).decode().splitlines()[0].split(",")
