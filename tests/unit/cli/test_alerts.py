from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from kcm.cli.alerts import KEYS_WAIT, list_alerts
from kcm.cli.overview import Leader, Overview, QueueOverview, ZoneOverview
from tests.docs.pages import ROOT

QUEUE = QueueOverview("job", 0, 0, 0, 0, oldest=0.0, retries=0, last_sync=None)
WELL = Overview(
    queues=[QUEUE],
    leaders=[Leader("dispatch:jobs.batch", "m1", 3.0), Leader("beat", "b1", 3.0)],
    streams={},
    bus={},
    processes=[],
    zones=[ZoneOverview("a", 2, 2, 0, 0, 0)],
)
CASES = [
    (WELL, []),
    (replace(WELL, leaders=WELL.leaders[1:]), ["KcmDispatchStopped"]),
    (replace(WELL, leaders=WELL.leaders[:1]), ["KcmLoopsStopped"]),
    (replace(WELL, queues=[replace(QUEUE, depth=1, oldest=61.0)]), ["KcmKeysWait"]),
    (replace(WELL, queues=[replace(QUEUE, depth=1, oldest=59.0)]), []),
    (replace(WELL, queues=[replace(QUEUE, depth=0, oldest=61.0)]), []),
    (replace(WELL, damaged={"pods default/a": "no JSON"}), ["KcmObjectsDamaged"]),
    (replace(WELL, zones=[ZoneOverview("a", 2, 1, 0, 1, 0)]), ["KcmNodesUnhealthy"]),
]


@pytest.mark.parametrize(("overview", "names"), CASES)
def test_what_is_wrong_has_the_name_of_its_alert(overview: Overview, names: list[str]) -> None:
    assert [alert.name for alert in list_alerts(overview)] == names


def test_names_and_limits_are_those_of_the_rules() -> None:
    text = (ROOT / "deploy" / "prometheus" / "kcm.rules.yml").read_text()
    (group,) = yaml.safe_load(text)["groups"]
    rules = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    assert {name for _, names in CASES for name in names} <= rules.keys()
    assert rules["KcmKeysWait"].endswith(f"> {KEYS_WAIT:g}")
