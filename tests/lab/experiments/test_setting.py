"""Settings are values with a name that stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments import Setting

SETTING = Setting(
    *("power-iteration", "power-iteration", "fashion-mnist", "rand-k", 0.1, 2, 60, "iid", 100),
    options=(("rate", 0.5), ("batch", 3)),
)


def test_canonical_text_and_key_stay_as_they_are():
    # Parts on people's disks bear this name: changing it makes them run everything again.
    assert SETTING.canonical == (
        '{"data":"fashion-mnist","figure":"power-iteration","nodes":100,"options":[["batch",3],["rate",0.5]],"rounds":60,'
        '"scheme":"rand-k","seed":2,"share":0.1,"split":"iid","task":"power-iteration"}'
    )
    assert SETTING.key == "afdfd380426bf80f81a2f47ce5695d66"


def test_json_round_trip():
    assert Setting.from_json(SETTING.canonical) == SETTING


def test_order_of_options_does_not_matter():
    other = replace(SETTING, options=(("batch", 3), ("rate", 0.5)))
    assert other == SETTING
    assert other.key == SETTING.key


def test_figures_share_the_key_of_the_same_run():
    assert replace(SETTING, figure="variants").key == SETTING.key


@pytest.mark.parametrize(
    "change",
    [{"seed": 3}, {"share": 0.2}, {"scheme": "wangni"}, {"rounds": 61}, {"split": "non-iid"}, {"options": ()}],
)
def test_everything_else_changes_the_key(change):
    assert replace(SETTING, **change).key != SETTING.key


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"options": 3}', SETTING.canonical.replace("seed", "sead")])
def test_foreign_text_is_refused(text):
    with pytest.raises(InvalidInput, match=r"not a setting written by Setting\.canonical"):
        Setting.from_json(text)
