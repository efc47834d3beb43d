"""Sixteen recipes for tests of operators (docs/testing-recipes.md).

    pytest examples/testing

Each test is complete in itself, but for the manifests beside this file. The operators are a few
lines of Python here; yours is a program that finds the control plane by `kcm.kubeconfig`.
"""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from kubernetes import client, config, watch
from manifests import MERGE, config_map, crd, deployment, pod, webhook

from kcm.testing import ApiError, ControlPlane, Timekeeper, Write

# --- leaders, conflicts, slow and forgetful servers


class Elector:
    """Leads while it holds the Lease `boss`, and renews it in time."""

    def __init__(self, kcm: ControlPlane, namespace: str, name: str) -> None:
        self.name, self.clock = name, kcm.clock
        self.client = kcm.objects.client
        self.path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/boss"

    def lead(self) -> bool:
        """Takes or renews the Lease, and reports whether it is held."""
        agent, now = {"user-agent": self.name}, self.clock.now
        lease = self.client.get(self.path, headers=agent).json()
        spec = lease.setdefault("spec", {})
        if spec.get("holderIdentity", self.name) != self.name:
            age = now - datetime.fromisoformat(spec["renewTime"])
            if age < timedelta(seconds=spec["leaseDurationSeconds"]):
                return False
        spec.update(holderIdentity=self.name, leaseDurationSeconds=15)
        spec["renewTime"] = f"{now:%Y-%m-%dT%H:%M:%S.%fZ}"
        return self.client.put(self.path, json=lease, headers=agent).is_success


def test_a_leader_that_cannot_renew_its_lease_is_followed_by_another(
    kcm: ControlPlane, kcm_clock: Timekeeper, kcm_namespace: str
) -> None:
    """Leader election: the leader's writes fail, time passes, and another one takes over."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "boss"}}
    kcm.apply(lease, kcm_namespace)
    first, second = (Elector(kcm, kcm_namespace, name) for name in ("first", "second"))
    assert first.lead()
    assert not second.lead()
    with kcm.faults.api(verb="update", resource="leases", error=503, for_="first"):
        kcm_clock.advance("10s")
        assert not first.lead()
        assert not second.lead(), "the Lease lasts for another five seconds"
        kcm_clock.advance("10s")
        assert second.lead()
    assert not first.lead(), "it has to see that it no longer leads"


def test_a_write_is_tried_again_after_each_conflict(kcm: ControlPlane, kcm_namespace: str) -> None:
    """Conflict storm: updates are answered with 409, and the client reads again each time."""
    kcm.apply(config_map("counter"), kcm_namespace)
    storm = kcm.faults.api(verb="update", resource="configmaps", error=409, times=5)
    with config.new_client_from_config(str(kcm.kubeconfig)) as connection:
        api: Any = client.CoreV1Api(connection)
        while True:
            seen = api.read_namespaced_config_map("counter", kcm_namespace)
            seen.data["count"] = str(int(seen.data["count"]) + 1)
            try:
                api.replace_namespaced_config_map("counter", kcm_namespace, seen)
                break
            except client.ApiException as error:
                if error.status != 409:
                    raise
    assert storm.hits == 5
    assert kcm.get("configmap/counter", kcm_namespace)["data"] == {"count": "1"}
    assert len(kcm.history("configmap", "counter", kcm_namespace)) == 2, "nothing else was written"


def test_a_client_gives_up_on_a_slow_answer_and_asks_again(
    kcm: ControlPlane, kcm_namespace: str
) -> None:
    """Slow API: answers come later than the client waits, until the server is quick again."""
    path, agent = f"/api/v1/namespaces/{kcm_namespace}/configmaps", {"user-agent": "hasty"}
    slow = kcm.faults.api(verb="list", latency=1.0, times=2, for_="hasty")
    attempts = 0
    while True:
        attempts += 1
        try:
            answer = kcm.objects.client.get(path, headers=agent, timeout=0.4)
            break
        except httpx.ReadTimeout:
            assert attempts < 10, "it would try for ever"
    assert answer.status_code == 200
    assert slow.hits == 2
    assert attempts >= 3


def test_a_client_lists_again_when_its_watch_has_expired(
    kcm: ControlPlane, kcm_namespace: str
) -> None:
    """Watch expired: the server answers 410, and only a new list shows what was missed."""
    with config.new_client_from_config(str(kcm.kubeconfig)) as connection:
        api: Any = client.CoreV1Api(connection)
        api.api_client.user_agent = "watcher"
        listed = api.list_namespaced_config_map(kcm_namespace)
        expired = kcm.faults.watches(resource="configmaps", how="expired", for_="watcher")
        kcm.apply(config_map("missed"), kcm_namespace)
        events = watch.Watch().stream(
            api.list_namespaced_config_map,
            kcm_namespace,
            resource_version=listed.metadata.resource_version,
            timeout_seconds=1,
        )
        with pytest.raises(client.ApiException, match="Expired: too old resource version") as told:
            next(events)
        assert (told.value.status, expired.hits) == (410, 1)
        names = [one.metadata.name for one in api.list_namespaced_config_map(kcm_namespace).items]
    assert "missed" in names


# --- what is refused


def test_a_quota_is_a_condition_of_the_deployment(kcm: ControlPlane, kcm_namespace: str) -> None:
    """Quota denial: two pods of three are made, and the Deployment says why."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "2"}},
    }
    kcm.apply(quota, kcm_namespace)
    kcm.eventually(lambda: "used" in kcm.get("quota/small", kcm_namespace)["status"])
    kcm.apply(deployment("web", replicas=3), kcm_namespace)
    web = kcm.wait_for("deployment/web", condition="ReplicaFailure", namespace=kcm_namespace)
    failure = next(c for c in web["status"]["conditions"] if c["type"] == "ReplicaFailure")
    assert "exceeded quota: small, requested: pods=1" in failure["message"]
    assert len(kcm.list("pods", kcm_namespace)) == 2
    with pytest.raises(ApiError, match="exceeded quota: small") as refused:
        kcm.apply(pod("another"), kcm_namespace)
    assert refused.value.code == 403


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_is_down_refuses_or_is_passed_over(
    kcm: ControlPlane, kcm_namespace: str, policy: str
) -> None:
    """Webhook down: its failure policy decides what becomes of the request."""
    hook = webhook(kcm_namespace, policy)
    kcm.apply(hook)
    down = kcm.faults.webhook("check.example.com", error="refused")
    answers: list[str] = []

    def is_asked() -> bool:
        try:
            kcm.apply(config_map(f"probe-{len(answers)}"), kcm_namespace)
            answers.append("written")
        except ApiError as error:
            answers.append(error.message)
        return down.hits > 0

    kcm.eventually(is_asked)
    if policy == "Fail":
        assert 'failed calling webhook "check.example.com"' in answers[-1]
        assert "connection refused" in answers[-1]
    else:
        assert answers[-1] == "written"
    kcm.delete(f"validatingwebhookconfiguration/{hook['metadata']['name']}")


def test_an_eviction_waits_for_the_disruption_budget(kcm: ControlPlane, kcm_namespace: str) -> None:
    """Eviction refused: a budget allows none until a further pod is ready."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    kcm.apply(deployment("web", replicas=2), kcm_namespace)
    kcm.apply(budget, kcm_namespace)
    kcm.wait_for("deployment/web", condition="Available", namespace=kcm_namespace)
    kcm.eventually(lambda: kcm.get("pdb/keep", kcm_namespace)["status"]["currentHealthy"] == 2)
    name = kcm.list("pods", kcm_namespace)[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/{kcm_namespace}/pods/{name}/eviction"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    refused = kcm.objects.client.post(path, json=eviction)
    assert refused.status_code == 429
    assert "violate the pod's disruption budget" in refused.json()["message"]
    (wait,) = kcm.explain("pdb/keep", kcm_namespace).waits
    assert wait == "it allows no eviction: 2 pods of 2 are healthy, 2 must be"
    kcm.apply(deployment("web", replicas=3), kcm_namespace)
    kcm.eventually(lambda: kcm.objects.client.post(path, json=eviction).is_success)


# --- the life of objects


def test_objects_stay_readable_when_a_kind_gets_another_version(
    kcm: ControlPlane, kcm_namespace: str
) -> None:
    """CRD upgrade: from v1alpha1 to v1, until the old version is removed."""
    dishes = f"/apis/cook.example.com/v1alpha1/namespaces/{kcm_namespace}/dishes"
    new = dishes.replace("v1alpha1", "v1") + "/soup"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    http = kcm.objects.client
    soup = {"apiVersion": "cook.example.com/v1alpha1", "kind": "Dish", "metadata": {"name": "soup"}}

    kcm.apply(crd("v1alpha1", "v1alpha1"))
    kcm.eventually(lambda: http.post(dishes, json={**soup, "spec": {"salt": "3g"}}).is_success)
    kcm.apply(crd("v1", "v1alpha1", "v1"))
    kcm.eventually(lambda: http.get(new).is_success)
    read = http.get(new).json()
    assert (read["apiVersion"], read["spec"]) == ("cook.example.com/v1", {"salt": "3g"})
    stored = kcm.get("crd/dishes.cook.example.com")["status"]["storedVersions"]
    assert stored == ["v1alpha1", "v1"], "the object is still stored as v1alpha1"
    with pytest.raises(ApiError, match=r"missing from spec\.versions"):
        kcm.apply(crd("v1", "v1"))

    assert http.patch(
        new, json={}, headers=MERGE
    ).is_success  # what a migration does with each object
    status = f"{definitions}/dishes.cook.example.com/status"
    assert http.patch(status, json={"status": {"storedVersions": ["v1"]}}, headers=MERGE).is_success
    kcm.apply(crd("v1", "v1"))
    kcm.eventually(lambda: http.get(dishes).status_code == 404)
    assert http.get(new).json()["spec"] == {"salt": "3g"}
    kcm.delete("crd/dishes.cook.example.com")


def test_a_finalizer_blocks_a_deletion_until_it_is_removed(
    kcm: ControlPlane, kcm_namespace: str
) -> None:
    """Finalizer: the object stays, and `explain` tells what it waits for."""
    kcm.apply(config_map("kept", finalizers=["example.com/clean-up"]), kcm_namespace)
    kcm.delete("configmap/kept", kcm_namespace)
    explanation = kcm.explain("configmap/kept", kcm_namespace)
    assert explanation.finalizers == ("example.com/clean-up",)
    assert any("example.com/clean-up" in wait for wait in explanation.waits), explanation
    path = f"/api/v1/namespaces/{kcm_namespace}/configmaps/kept"
    kcm.objects.client.patch(path, json={"metadata": {"finalizers": None}}, headers=MERGE)
    assert not kcm.explain("configmap/kept", kcm_namespace).exists


def test_what_an_owner_owned_is_collected(kcm: ControlPlane, kcm_namespace: str) -> None:
    """Owner deleted: the garbage collector deletes what names it as its owner, and nothing else."""
    (owner,) = kcm.apply(config_map("owner"), kcm_namespace)
    meta = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": meta["uid"]}
    kcm.apply(config_map("owned", ownerReferences=[reference]), kcm_namespace)
    kcm.apply(config_map("free"), kcm_namespace)
    kcm.delete("configmap/owner", kcm_namespace)
    kcm.eventually(lambda: not kcm.explain("configmap/owned", kcm_namespace).exists)
    removal = kcm.history("configmap", "owned", kcm_namespace)[-1]
    assert (removal.event, removal.author.name) == ("DELETED", "garbage-collector-controller")
    assert kcm.explain("configmap/free", kcm_namespace).exists


# --- time


@pytest.mark.kcm(seed=1, nodes=2)
def test_pods_of_a_lost_node_are_replaced_after_five_minutes(kcm_fresh: ControlPlane) -> None:
    """Node loss: unreachable after its grace period, emptied five minutes later."""
    kcm_fresh.apply(deployment("web", replicas=4))
    kcm_fresh.wait_for("deployment/web", condition="Available")
    lost = kcm_fresh.clock.now
    kcm_fresh.nodes["node-1"].stop()
    kcm_fresh.wait_for("node/node-1", condition="Ready", status="Unknown", within="2m")
    noticed = kcm_fresh.clock.now
    assert timedelta(seconds=40) <= noticed - lost <= timedelta(seconds=60)

    def living() -> list[str]:
        pods = kcm_fresh.list("pods", selector="app=web")
        return [
            p["spec"].get("nodeName", "") for p in pods if "deletionTimestamp" not in p["metadata"]
        ]

    kcm_fresh.clock.advance("4m50s")
    assert sorted(living()) == ["node-1", "node-1", "node-2", "node-2"]
    kcm_fresh.clock.advance("30s")
    assert living() == ["node-2"] * 4


@pytest.mark.kcm(seed=1)
def test_a_monthly_job_runs_twelve_times_a_year(kcm_fresh: ControlPlane) -> None:
    """Clock over a year: a CronJob's twelve jobs, each at the first of its month."""
    template = pod("report", run_for="30s")
    template["spec"]["restartPolicy"] = "Never"
    job = {"metadata": template["metadata"], "spec": template["spec"]}
    del job["metadata"]["name"]
    spec = {"schedule": "0 0 1 * *", "successfulJobsHistoryLimit": 20}
    spec["jobTemplate"] = {"spec": {"template": job}}
    kcm_fresh.apply(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": spec}
    )
    kcm_fresh.clock.to("2031-01-01T00:01:00Z")
    jobs = [one["status"] for one in kcm_fresh.list("jobs")]
    assert all(status["succeeded"] == 1 for status in jobs)
    months = [f"2030-{month:02}" for month in range(2, 13)] + ["2031-01"]
    assert sorted(status["startTime"] for status in jobs) == [
        f"{month}-01T00:00:00Z" for month in months
    ]


@pytest.mark.kcm(seed=1)
def test_a_container_that_keeps_crashing_is_restarted_ever_later(kcm_fresh: ControlPlane) -> None:
    """Crash loop back-off: the first restart is at once, the next after 10, 20 and 40 seconds."""
    kcm_fresh.apply(pod("broken"))
    kcm_fresh.wait_for("pod/broken", condition="Ready")
    waits = []
    for crash in range(1, 5):
        crashed = kcm_fresh.clock.now
        kcm_fresh.pods["broken"].crash(exit_code=3)

        def is_restarted(restarts: int = crash) -> bool:
            (status,) = kcm_fresh.get("pod/broken")["status"]["containerStatuses"]
            return status["restartCount"] == restarts and "running" in status["state"]

        kcm_fresh.eventually(is_restarted, within="5m")
        waits.append(round((kcm_fresh.clock.now - crashed).total_seconds()))
    assert waits[0] <= 1
    assert waits[1:] == [10, 20, 40]


@pytest.mark.kcm(seed=1, programs=True)
def test_a_job_fails_by_the_exit_code_of_its_program(kcm_fresh: ControlPlane) -> None:
    """Programs: a Job's container reads a ConfigMap, sleeps for an hour and exits with 3."""
    script = "cat /conf/key > /dev/termination-log; sleep 3600; exit 3"
    work = pod("work")["spec"] | {"restartPolicy": "Never"}
    work["volumes"] = [{"name": "conf", "configMap": {"name": "conf"}}]
    mounts = [{"name": "conf", "mountPath": "/conf"}]
    own = {"command": ["sh", "-c", script], "volumeMounts": mounts}
    work["containers"] = [work["containers"][0] | own]
    policy = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    spec = {"template": {"spec": work}, "podFailurePolicy": {"rules": [policy]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec}
    kcm_fresh.apply([config_map("conf") | {"data": {"key": "no orders today"}}, job])
    kcm_fresh.clock.advance("30m")
    assert kcm_fresh.get("job/work")["status"]["ready"] == 1
    kcm_fresh.wait_for("job/work", condition="Failed", within="31m")
    (failed,) = kcm_fresh.list("pods")
    ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (3, "no orders today")


def test_a_roll_out_that_gets_stuck_keeps_the_old_pods(
    kcm: ControlPlane, kcm_clock: Timekeeper, kcm_namespace: str
) -> None:
    """Rolling update that gets stuck: it is told after progressDeadlineSeconds; nothing breaks."""
    kcm.apply(deployment("web", replicas=3), kcm_namespace)
    kcm.wait_for("deployment/web", condition="Available", namespace=kcm_namespace)
    kcm.apply(deployment("web", replicas=3, outcome="never-ready"), kcm_namespace)
    kcm_clock.advance("50s")
    kcm.wait_for("deployment/web", condition="Progressing", namespace=kcm_namespace)
    web = kcm.wait_for(
        "deployment/web", condition="Progressing", status="False", namespace=kcm_namespace
    )
    reasons = {one["type"]: one["reason"] for one in web["status"]["conditions"]}
    assert reasons["Progressing"] == "ProgressDeadlineExceeded"
    assert web["status"]["availableReplicas"] == 3


# --- chance


def run_with_chaos(seed: int) -> dict[str, str]:
    """Returns the resourceVersions of the pods after an eventful minute."""

    def is_evicted(write: Write) -> bool:
        return write.kind == "Pod" and write.event == "DELETED"

    failures = ("pod-crash", "pod-oom", "node-partition")
    with ControlPlane(seed=seed, nodes=2) as plane:
        plane.apply(deployment("web", replicas=3))
        plane.wait_for("deployment/web", condition="Available")
        with (
            plane.never(is_evicted, "a pod is gone although no node was lost for long"),
            plane.chaos(seed=seed, rate=12, of=failures) as chaos,
        ):
            plane.clock.advance("1m")
        plane.wait_for("deployment/web", condition="Available", within="10m")
        assert len(chaos.log) > 10
        pods = [one["metadata"] for one in plane.list("pods")]
        return {one["name"]: one["resourceVersion"] for one in pods}


def test_a_seed_repeats_a_run_with_all_that_failed_in_it() -> None:
    """Seed and chaos: what must never happen does not, and a run can be repeated exactly."""
    first = run_with_chaos(seed=7)
    assert run_with_chaos(seed=7) == first
