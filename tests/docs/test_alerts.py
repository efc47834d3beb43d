"""The alert rules and the board: they ask for metrics that kcm has, and fire when they should.

The series come from a running kcm. Each case changes one thing in them, and promtool says which
alerts fire then.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.pages import ROOT
from tests.docs.workplace import Workplace

RULES = ROOT / "deploy" / "prometheus" / "kcm.rules.yml"
CONFIG = RULES.with_name("prometheus.yml")
BOARD = ROOT / "deploy" / "grafana" / "kcm.json"
RUNBOOK = ROOT / "docs" / "debugging.md"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not there: it comes with Debian's package prometheus"
)
NAME = re.compile(r"\b(?:kcm|workqueue|node_collector|apiserver|aggregator)_\w+")
MINUTES = 60

REJECTED = "apiserver_flowcontrol_rejected_requests_total"
Values = Callable[[int], float]  # of a series, by minute
Series = dict[str, Values]  # by its name with its labels


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


def board_expressions() -> list[str]:
    panels = json.loads(BOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


ALERTS = [rule["alert"] for rule in rules()]
EXPRESSIONS = [*(rule["expr"] for rule in rules()), *board_expressions()]


@pytest.fixture(scope="module")
def samples(workplace: Workplace) -> dict[str, float]:
    """The samples on the pages of a running kcm, and the names of all families, without samples."""
    return {name: value for page in workplace.metrics_pages() for name, value in _read(page)}


def _read(page: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families(page):
        yield family.name, 0.0
        for sample in family.samples:
            labels = ",".join(f"{key}={json.dumps(text)}" for key, text in sample.labels.items())
            yield f"{sample.name}{{{labels}}}", sample.value


def test_every_metric_that_is_asked_for_is_there(samples: dict[str, float]) -> None:
    there = {name.partition("{")[0] for name in samples}
    there |= {f"{name}_total" for name in there} | {f"{name}_bucket" for name in there}
    asked = {name for text in EXPRESSIONS for name in NAME.findall(text)}
    assert len(asked) > 30
    assert asked - there == set()


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_its_section_in_the_runbook(alert: str) -> None:
    assert f"\n### {alert}\n" in RUNBOOK.read_text()


def _promtool(*arguments: str, folder: Path | None = None) -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *arguments], check=False, capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_can_read_rules_configuration_and_board(tmp_path: Path) -> None:
    shown = [
        {"record": f"panel:{number}", "expr": text.replace("$__rate_interval", "1m")}
        for number, text in enumerate(board_expressions())
    ]
    board = {"groups": [{"name": "board", "rules": shown}]}
    (tmp_path / "board.yml").write_text(yaml.safe_dump(board))
    _promtool("check", "rules", str(RULES), str(tmp_path / "board.yml"))
    _promtool("check", "config", "--syntax-only", str(CONFIG))


# --- what fires when


def steady(value: float) -> Values:
    return lambda minute: value


def growing(each_minute: float, start: float = 0.0) -> Values:
    return lambda minute: start + each_minute * minute


def stepping(before: float, after: float) -> Values:
    """A series that changes ten minutes before the end."""
    return lambda minute: before if minute < MINUTES - 10 else after


def until_minute(last: int, value: float = 1.0) -> Values:
    """A series that ends."""
    return lambda minute: value if minute <= last else float("nan")


PODS = 'kcm_lease_held{lease="dispatch:pods",holder="m1"}'
# What is wrong in each case: series that match the first are not there, and these are added.
CASES: dict[str, tuple[str, Series]] = {
    "KcmDown": ("kcm_store_up", {}),
    "KcmDispatchStopped": ('"dispatch:pods"', {PODS: until_minute(50)}),
    "KcmLoopsStopped": ('lease="beat"', {}),
    "KcmQueueWithoutWorkers": ("", {'kcm_queue_workers{queue="mine"}': steady(0)}),
    "KcmKeysWait": ("", {'kcm_workqueue_oldest_seconds{name="job"}': steady(90)}),
    "KcmSyncsFail": ("", {'kcm_reconcile_total{controller="job",result="error"}': growing(20)}),
    "KcmWorkersDie": ("", {'kcm_workqueue_reaped_total{name="job"}': growing(1)}),
    "KcmLoopFails": ("", {'kcm_loop_failures_total{loop="dispatch"}': growing(2)}),
    "KcmCachesBehind": ("", {'kcm_informer_failures_total{kind="Pod"}': growing(2)}),
    "KcmStoreEmptied": ("kcm_store_emptied", {"kcm_store_emptied_total{}": steady(1)}),
    "KcmStoreRestarted": ("kcm_store_epoch", {"kcm_store_epoch_start{}": stepping(0, 7)}),
    "KcmStoreMemory": ("kcm_store_max", {"kcm_store_max_memory_bytes{}": steady(1000)}),
    "KcmReplicationBehind": ("", {'kcm_store_replication_behind_bytes{of="a"}': steady(2**25)}),
    "KcmReplicaLost": ("kcm_store_replicas", {"kcm_store_replicas{}": stepping(2, 1)}),
    "KcmObjectsDamaged": ("", {'kcm_store_damaged_objects{resource="pods"}': steady(1)}),
    "KcmEventsRefused": ("", {'kcm_event_bus_events_total{result="refused"}': growing(1)}),
    "KcmNodesUnhealthy": ("", {'node_collector_unhealthy_nodes_in_zone{zone="a"}': steady(1)}),
    "KcmApiErrors": ("", {'apiserver_request_total{verb="GET",code="503"}': growing(1000)}),
    "KcmApiRefuses": ("", {f'{REJECTED}{{priority_level="workload-low"}}': growing(60)}),
    "KcmApiStalls": ("", {'kcm_apiserver_event_loop_longest_stall_seconds{of="a"}': steady(3)}),
    "KcmAggregatedApiDown": ("", {'aggregator_unavailable_apiservice{name="v1.x"}': steady(1)}),
}


def test_every_alert_has_a_case() -> None:
    assert list(CASES) == ALERTS


# What the documents' examples before this test have left behind.
LEFT_BEHIND = (
    "kcm_store_damaged_objects", "kcm_store_emptied_total",
    "kcm_workqueue_oldest_seconds", "node_collector_unhealthy_nodes_in_zone",
    "kcm_apiserver_event_loop_longest_stall_seconds", "aggregator_unavailable_apiservice",
)  # fmt: skip


def well(samples: dict[str, float]) -> Series:
    """Returns the series that the rules ask for, of a kcm that works and rests."""
    asked = {name for rule in rules() for name in NAME.findall(rule["expr"])}
    return {
        name: steady(0.0 if name.startswith(LEFT_BEHIND) else value)
        for name, value in samples.items()
        if "{" in name and name.partition("{")[0] in asked
    } | {PODS: steady(1)}


@needs_promtool
def test_each_alert_fires_when_it_should_and_no_other(
    samples: dict[str, float], tmp_path: Path
) -> None:
    tests = [_case([], well(samples))]
    for alert, (missing, added) in CASES.items():
        left = {
            name: values
            for name, values in well(samples).items()
            if not (missing and re.search(missing, name))
        }
        tests.append(_case([alert], left | added))
    given = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(given))
    _promtool("test", "rules", "alerts.yml", folder=tmp_path)


def _case(alerts: list[str], series: Series) -> dict[str, Any]:
    """Returns a test of promtool: after an hour, these alerts fire, and no other."""
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]
    return {
        "name": ", ".join(alerts) or "all is well",
        "interval": "1m",
        "input_series": [
            {"series": name, "values": " ".join(_text(values(n)) for n in range(MINUTES + 1))}
            for name, values in series.items()
        ],
        "promql_expr_test": [{"expr": firing, "eval_time": f"{MINUTES}m", "exp_samples": samples}],
    }


def _text(value: float) -> str:
    return "_" if value != value else repr(value)  # noqa: PLR0124 - NaN stands for no sample
