"""What a control plane tells about the writes in it."""

from __future__ import annotations

import base64
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store.watch import WatchReader
from kcm.testing import ApiError, ControlPlane
from kcm.testing.history.writes import Write
from tests.integration.testing.objects import CRON_TABS, WEB

FOREIGN = """
import sys
from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
io = RedisIO(Settings(state_dir=sys.argv[1]))
io.attach()
Store(io).create(ConfigMap(metadata=ObjectMeta(name="foreign", namespace="default")))
"""
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=2) as started:
        yield started


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    name = f"looking-{next(_NUMBERS)}"
    control_plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def authors(writes: Sequence[Write]) -> set[tuple[str, str]]:
    return {(write.author.kind, write.author.name) for write in writes}


def test_the_writes_of_a_roll_out_have_their_authors(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.apply(WEB, namespace)
    control_plane.wait_for("deployment/web", condition="Available", namespace=namespace)
    control_plane.objects.client.delete(
        f"/apis/apps/v1/namespaces/{namespace}/deployments/web", headers={"user-agent": "mine/1"}
    )
    control_plane.eventually(lambda: not control_plane.list("pods", namespace))
    history = control_plane.history(namespace=namespace)
    web = [write for write in history if write.resource == "deployments.apps"]
    assert (web[0].verb, web[0].event, web[0].manager) == ("patch", "ADDED", "kcm-testing")
    assert (web[0].author.kind, web[0].author.name) == ("user", "kubernetes-admin")
    (deleted,) = (write for write in web if write.verb == "delete")
    assert deleted.author.agent == "mine/1"
    by_controller = [one for one in web if one.author.kind == "controller"]
    assert authors(by_controller) == {("controller", "deployment-controller")}
    assert {(one.subresource, one.author.key) for one in by_controller} >= {
        ("status", f"{namespace}/web")
    }
    pods = [write for write in history if write.kind == "Pod"]
    created = [write for write in pods if write.event == "ADDED"]
    assert authors(created) == {("controller", "replicaset-controller")}
    bound = [write for write in pods if write.subresource == "binding"]
    assert authors(bound) == {("controller", "default-scheduler")}
    assert "spec.nodeName" in [change.path for change in bound[0].changes]
    running = [write for write in pods if "kubelet of node-" in write.author.name]
    assert {write.subresource for write in running} >= {"status"}
    assert {write.uid for write in pods if write.event == "DELETED"} == {w.uid for w in created}
    assert all(write.time.tzinfo is not None for write in history)


def test_the_history_is_what_the_watch_logs_have(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.apply(WEB, namespace)
    control_plane.wait_for("deployment/web", condition="Available", namespace=namespace)
    control_plane.delete("deployment/web", namespace)
    folder = control_plane.kubeconfig.parent
    io = RedisIO(Settings(state_dir=folder, redis_url=""))
    try:
        io.attach()
        changes = WatchReader(io).read_changes(dict.fromkeys(BUILT_IN.resources(), 0), 0)
    finally:
        io.close()
    seen = {(entry.resource_version, entry.resource.name) for entry in changes.entries}
    history = control_plane.history()
    newest = max(number for number, _ in seen)
    numbers = [write.resource_version for write in history]
    assert numbers == sorted(set(numbers))
    known = {(write.resource_version, write.resource) for write in history}
    assert {each for each in known if each[0] <= newest} == seen
    assert "unknown" not in {write.author.name for write in history}
    assert history.gaps == ()


def test_a_history_is_of_a_kind_a_name_a_namespace_and_a_time(
    control_plane: ControlPlane, namespace: str
) -> None:
    for name in ("a", "b"):
        meta = {"name": name}
        control_plane.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, namespace)
    since = control_plane.note("between").after
    change = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"x": "1"},
    }
    control_plane.apply(change, namespace)
    both = control_plane.history("cm", "a", namespace)
    assert [write.event for write in both] == ["ADDED", "MODIFIED"]
    (last,) = control_plane.history("cm", "a", namespace, since=since)
    assert (last.name, [str(each) for each in last.changes]) == ("a", ['data.x: absent → "1"'])
    assert last.old is not None
    assert last.new is not None
    assert ("data" in last.old, last.new["data"]) == (False, {"x": "1"})
    since_time = control_plane.history("cm", "a", namespace, since=last.time)
    assert [write.resource_version for write in since_time] == [last.resource_version]
    (own,) = control_plane.history("namespace", namespace, "")
    assert own.target == f"namespaces/{namespace}"
    text = str(both)
    assert "which is new  by kubernetes-admin (kcm-testing" in text
    assert "note: between" in text
    assert 'data.x: absent → "1"' in text


def test_the_writes_of_a_kind_that_is_gone_are_kept(control_plane: ControlPlane) -> None:
    control_plane.apply(CRON_TABS)
    control_plane.wait_for("crd/crontabs.example.com", condition="Established")
    path = "/apis/example.com/v1/namespaces/default/crontabs"
    control_plane.eventually(lambda: control_plane.objects.client.get(path).is_success)
    control_plane.apply(
        {"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}}
    )
    control_plane.delete("crd/crontabs.example.com")
    control_plane.eventually(lambda: not control_plane.list("crd", None))
    tabs = control_plane.history("crontabs")
    with pytest.raises(errors.UnknownKind):
        control_plane.history("crontab-of-nobody")
    assert [(write.event, write.name) for write in tabs] == [("ADDED", "a"), ("DELETED", "a")]


def test_what_another_process_writes_is_in_the_history(control_plane: ControlPlane) -> None:
    folder = str(control_plane.kubeconfig.parent)
    subprocess.run([sys.executable, "-c", FOREIGN, folder], check=True, timeout=60)
    (write,) = control_plane.history("configmap", "foreign")
    assert (write.event, write.author.name) == ("ADDED", "unknown")


def test_no_value_of_a_secret_is_in_a_text(control_plane: ControlPlane, namespace: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    for value in ("s3cr3t-one", "s3cr3t-two"):
        control_plane.apply({**secret, "stringData": {"password": value}}, namespace)
    control_plane.delete("secret/s", namespace)
    history = control_plane.history(namespace=namespace)
    assert "data.password: (hidden) → (hidden)" in str(history)
    encoded = base64.b64encode(b"s3cr3t-two").decode()
    assert "s3cr3t" not in str(history) + repr(list(history))
    assert encoded not in str(history) + repr(list(history))
    control_plane.apply({**secret, "stringData": {"password": "s3cr3t-two"}}, namespace)
    said = control_plane.explain("secret/s", namespace)
    assert said.obj is not None
    assert encoded not in str(said) + repr(said)
    assert control_plane.history("secret", "s", namespace)[1].last["data"]["password"] == encoded


def test_what_must_never_happen_fails_at_the_next_wait(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.apply(WEB, namespace)

    def is_deletion(write: Write) -> bool:
        return write.namespace == namespace and write.kind == "Pod" and write.event == "DELETED"

    control_plane.never(is_deletion, "no pod is deleted")
    control_plane.wait_for("deployment/web", condition="Available", namespace=namespace)
    control_plane.delete("deployment/web", namespace)
    with pytest.raises(AssertionError, match="this must not happen: no pod is deleted") as broken:
        control_plane.eventually(lambda: False, what="the end")
    assert "pods/web-" in str(broken.value)
    assert "before it:" in str(broken.value)
    control_plane.eventually(lambda: True)


def test_what_must_never_happen_fails_at_the_end_of_its_block(
    control_plane: ControlPlane, namespace: str
) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    with control_plane.never(lambda write: write.namespace == namespace and write.name == "b"):
        control_plane.apply(config, namespace)
    with (
        pytest.raises(AssertionError, match="nothing is written"),
        control_plane.never(lambda write: write.namespace == namespace, "nothing is written"),
    ):
        control_plane.apply({**config, "data": {"x": "1"}}, namespace)


def test_it_fails_at_the_end_of_the_control_plane() -> None:
    short = ControlPlane(nodes=0, controllers=["namespace-controller"])
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}

    def break_it() -> None:
        with short:
            short.never(lambda write: write.kind == "Namespace", "no namespace is made")
            short.apply(namespace)

    with pytest.raises(AssertionError, match="no namespace is made"):
        break_it()
    assert [write.event for write in short.history("namespace", "x")] == ["ADDED"]


def test_a_refused_write_is_known(control_plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(ApiError):
        control_plane.apply(WEB.replace("replicas: 2", "replicas: -1"), namespace)
    (refused,) = control_plane.recorder.syncs.refused("deployments.apps", namespace, "web")
    assert "spec.replicas" in refused.refusal.error
    assert refused.refusal.author.name == "kubernetes-admin"


QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {configmaps: "10"}}
"""


def test_a_write_that_is_charged_to_a_quota_has_its_author(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.apply(QUOTA, namespace)
    control_plane.eventually(lambda: control_plane.get("quota/few", namespace)["status"])
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charged"}}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert control_plane.objects.client.post(path, json=config).is_success
    (created,) = control_plane.history("cm", "charged", namespace)
    assert (created.verb, created.author.name) == ("create", "kubernetes-admin")
    used = [w for w in control_plane.history("quota", "few", namespace) if w.author.kind == "user"]
    assert "status.used.configmaps" in [each.path for each in used[-1].changes]


def test_no_write_is_missed_or_there_twice_under_load(
    control_plane: ControlPlane, namespace: str
) -> None:
    since = control_plane.recorder.position()

    def write_many(number: int) -> None:
        for round_ in range(10):
            config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
            control_plane.apply({**config, "data": {"round": str(round_)}}, namespace)
            control_plane.history("cm", f"c{number}", namespace)  # reads the logs meanwhile
        control_plane.delete(f"cm/c{number}", namespace)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write_many, range(6)))
    for number in range(6):
        own = control_plane.history("cm", f"c{number}", namespace, since=since)
        assert [write.event for write in own] == ["ADDED", *["MODIFIED"] * 9, "DELETED"]
        assert {write.author.name for write in own} == {"kubernetes-admin"}
        rounds = [write.last["data"]["round"] for write in own]
        assert rounds == [*map(str, range(10)), "9"]
        for before, after in itertools.pairwise(own):
            assert after.old == before.last
