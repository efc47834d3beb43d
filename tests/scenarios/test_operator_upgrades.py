"""An operator on kopf is killed, started again, and upgraded to another version of its kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.operators import OperatorProcess
from tests.scenarios.cluster import Cluster
from tests.scenarios.plane import running_in_process
from tests.scenarios.upgraded_kind import UpgradedKind

pytestmark = pytest.mark.scenario

PROGRAM = Path(__file__).with_name("operators") / "lockers.py"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
OLD, NEW = "v1alpha1", "v1"
SPECS: dict[str, dict[str, Any]] = {
    OLD: {"size": {"type": "string"}, "owner": {"type": "string"}},
    NEW: {
        "rows": {"type": "integer", "minimum": 1},
        "columns": {"type": "integer", "minimum": 1},
        "owner": {"type": "string"},
    },
}


@contextmanager
def release(
    cluster: Cluster, folder: Path, number: str, **environment: str
) -> Iterator[OperatorProcess]:
    """Runs a release of the operator, and kills it."""
    command = [sys.executable, "-m", "kopf", "run", str(PROGRAM), "--all-namespaces"]
    log = folder / f"release-{number}.log"
    more = {"RELEASE": number, "CERTIFICATES": str(folder), **environment}
    operator = OperatorProcess(command, cluster.kubeconfig, log, **more)
    try:
        yield operator
    finally:
        operator.kill()


def boxes(cluster: Cluster, name: str) -> tuple[str, str] | None:
    """Returns how many boxes a Locker's ConfigMap says there are, and which release wrote it."""
    response = cluster.client.get(f"{CONFIG_MAPS}/{name}")
    if response.status_code != 200:
        return None
    data = response.json()["data"]
    return data["boxes"], data["release"]


def asks_about(cluster: Cluster, version: str) -> bool:
    """Reports whether both of kopf's configurations name this version of the kind."""
    paths = [CONFIGURATIONS.format(kind) for kind in ("mutating", "validating")]
    rules = [
        [rule for hook in item.get("webhooks") or () for rule in hook["rules"]]
        for path in paths
        for item in cluster.get(path)["items"]
    ]
    return len(rules) == 2 and all(
        any(version in rule["apiVersions"] for rule in one) for one in rules
    )


def check_first_release(cluster: Cluster, lockers: UpgradedKind, operator: OperatorProcess) -> None:
    """Creates Lockers, kills the operator, and checks that it catches up."""
    path = lockers.path_of(OLD)
    operator.until(lambda: asks_about(cluster, OLD), "kopf's configurations")
    assert (
        cluster.create(path, lockers.build(OLD, "hall", size="2x3", owner="ada")).status_code == 201
    )
    filled = cluster.create(path, lockers.build(OLD, "attic"))
    assert filled.json()["spec"] == {"size": "1x1"}
    refused = cluster.create(path, lockers.build(OLD, "cellar", size="big"))
    assert (refused.status_code, "big is no size" in refused.text) == (422, True)
    assert cluster.create(path, lockers.build(OLD, "porch", size="1x2")).status_code == 201
    operator.until(lambda: boxes(cluster, "porch") == ("2", "1"), "the ConfigMap of porch")
    operator.until(lambda: boxes(cluster, "hall"), "the ConfigMap of hall")
    operator.kill()
    assert cluster.create(path, lockers.build(OLD, "shed", size="1x1")).status_code == 500
    assert cluster.client.delete(lockers.path_of(OLD, "porch")).is_success
    assert cluster.client.delete(f"{CONFIG_MAPS}/hall").is_success
    operator.start()
    operator.until(lambda: boxes(cluster, "hall") == ("6", "1"), "the child that was missing")
    operator.until(
        lambda: not cluster.has(lockers.path_of(OLD, "porch")), "the end of the deleted one"
    )
    assert cluster.has(f"{CONFIG_MAPS}/porch-closed")


def apply_second_definition(cluster: Cluster, lockers: UpgradedKind) -> None:
    """Writes the definition of the second release, which stores v1."""
    lockers.convert()
    path = lockers.path_of(NEW, "hall")
    until(lambda: cluster.client.get(path).status_code == 500, "the new version")
    assert "connection refused" in cluster.client.get(path).text
    assert cluster.get(lockers.path_of(OLD, "hall"))["spec"]["size"] == "2x3"  # as it is stored


def check_second_release(
    cluster: Cluster, lockers: UpgradedKind, operator: OperatorProcess
) -> None:
    """Checks that the second release goes on with what the first one left."""
    operator.until(lambda: boxes(cluster, "hall") == ("6", "2"), "the first Locker")
    operator.until(lambda: boxes(cluster, "attic") == ("1", "2"), "the second Locker")
    operator.until(lambda: asks_about(cluster, NEW), "kopf's configurations of the new version")
    spec = cluster.get(lockers.path_of(NEW, "hall"))["spec"]
    assert spec == {"rows": 2, "columns": 3, "owner": "ada"}
    # A client of before meets the webhooks of now.
    made = cluster.create(lockers.path_of(OLD), lockers.build(OLD, "shed", size="4x5"))
    assert (made.status_code, made.json()["spec"]) == (201, {"size": "4x5"}), made.text
    refused = cluster.create(lockers.path_of(OLD), lockers.build(OLD, "hangar", size="20x20"))
    assert (refused.status_code, "at most 100 boxes" in refused.text) == (422, True), refused.text
    filled = cluster.create(lockers.path_of(NEW), lockers.build(NEW, "nook"))
    assert filled.json()["spec"] == {"rows": 1, "columns": 1}, filled.text
    operator.until(lambda: boxes(cluster, "shed") == ("20", "2"), "the one of the old client")
    operator.kill()
    moved = cluster.patch(lockers.path_of(NEW, "hall"), {"spec": {"columns": 5}})
    assert moved.status_code == 500  # nobody admits it
    operator.start()
    operator.until(
        lambda: cluster.patch(lockers.path_of(NEW, "hall"), {"spec": {"columns": 5}}).is_success,
        "the operator's return",
    )
    operator.until(lambda: boxes(cluster, "hall") == ("10", "2"), "the change")


def test_an_operator_is_upgraded_with_a_conversion_and_loses_nothing(tmp_path: Path) -> None:
    with running_in_process() as cluster:
        lockers = UpgradedKind(cluster, "Locker", SPECS, tmp_path)
        lockers.define()
        with release(cluster, tmp_path, "1") as operator:
            check_first_release(cluster, lockers, operator)
        uids = {
            name: cluster.get(lockers.path_of(OLD, name))["metadata"]["uid"]
            for name in ("hall", "attic")
        }
        apply_second_definition(cluster, lockers)
        with release(cluster, tmp_path, "2", CONVERSION_PORT=str(lockers.port)) as operator:
            check_second_release(cluster, lockers, operator)
            lockers.migrate()
        # Nobody converts any more, and nobody needs to.
        assert cluster.names(lockers.path_of(NEW)) == ["attic", "hall", "nook", "shed"]
        kept = {name: cluster.get(lockers.path_of(NEW, name)) for name in uids}
        assert {name: obj["metadata"]["uid"] for name, obj in kept.items()} == uids
        assert kept["hall"]["spec"] == {"rows": 2, "columns": 5, "owner": "ada"}
        assert kept["attic"]["spec"] == {"rows": 1, "columns": 1}
        children = set(cluster.names(CONFIG_MAPS))
        assert {"attic", "hall", "nook", "shed", "porch-closed"} <= children
