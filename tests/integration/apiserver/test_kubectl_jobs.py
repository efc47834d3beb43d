"""kubectl's commands for Jobs and CronJobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

JOB = ("create", "job", "work", "--image=busybox", "--", "date")
CRON_JOB = ("create", "cronjob", "tick", "--image=busybox", "--schedule=0 3 * * *", "--", "date")


def get_json(kubectl: Kubectl, *what: str) -> Any:
    return json.loads(kubectl("get", *what, "-o", "json"))


def test_a_job_gets_its_selector_and_its_tables(kubectl: Kubectl) -> None:
    kubectl(*JOB)
    job = get_json(kubectl, "job", "work")
    uid = job["metadata"]["uid"]
    chosen = {"batch.kubernetes.io/controller-uid": uid}
    assert job["spec"]["selector"]["matchLabels"] == chosen
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels == chosen | {
        "controller-uid": uid,
        "job-name": "work",
        "batch.kubernetes.io/job-name": "work",
    }
    assert job["metadata"]["labels"] == labels
    title, line = kubectl("get", "jobs").splitlines()
    assert title.split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert line.split()[:3] == ["work", "Running", "0/1"]
    described = kubectl("describe", "job", "work")
    for text in ("Parallelism:", "Completion Mode:", "NonIndexed", "Backoff Limit:"):
        if text != "Backoff Limit:" or "1.27" not in kubectl.binary:
            assert text in described
    assert "job.batch/work" in kubectl("get", "all")


def test_a_cron_job_is_shown_and_a_job_made_from_it(kubectl: Kubectl) -> None:
    kubectl(*CRON_JOB)
    title, line = kubectl("get", "cronjobs").splitlines()
    assert title.split()[:3] == ["NAME", "SCHEDULE", "TIMEZONE"]
    assert line.split()[:9] == ["tick", "0", "3", "*", "*", "*", "<none>", "False", "0"]
    kubectl("create", "job", "now", "--from=cronjob/tick")
    stored = get_json(kubectl, "job", "now")
    assert stored["metadata"]["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert stored["metadata"]["ownerReferences"][0]["name"] == "tick"
    assert "Concurrency Policy:" in kubectl("describe", "cj", "tick")


def test_explain_knows_them(kubectl: Kubectl) -> None:
    assert "backoffLimit" in kubectl("explain", "job.spec")
    assert "Number of failed pods" in kubectl("explain", "job.spec.backoffLimit")
    assert "schedule" in kubectl("explain", "cronjob.spec")


def test_what_may_not_change_is_refused(kubectl: Kubectl) -> None:
    kubectl(*JOB)
    patch = '{"spec":{"completions":3}}'
    refused = kubectl.run_failing("patch", "job", "work", "-p", patch)
    assert "spec.completions: Invalid value: 3: field is immutable" in refused
    kubectl("patch", "job", "work", "-p", '{"spec":{"parallelism":3,"suspend":true}}')
    assert get_json(kubectl, "job", "work")["metadata"]["generation"] == 2


def test_kubectl_deletes_a_job_with_its_pods_and_other_clients_keep_them(
    kubectl: Kubectl, api: Live
) -> None:
    kubectl(*JOB)
    path = f"/apis/batch/v1/namespaces/{kubectl.namespace}/jobs/work"
    api.request("DELETE", path)
    assert get_json(kubectl, "job", "work")["metadata"]["finalizers"] == ["orphan"]
    patch = '{"metadata":{"finalizers":null}}'
    kubectl("patch", "job", "work", "--type=merge", "-p", patch)
    kubectl(*JOB)
    kubectl("delete", "job", "work", "--wait=false")
    kubectl.run_failing("get", "job", "work")


@pytest.mark.parametrize("schedule", ["* * * *", "TZ=UTC 0 3 * * *"])
def test_a_wrong_schedule_is_refused(kubectl: Kubectl, schedule: str) -> None:
    refused = kubectl.run_failing(
        "create", "cronjob", "tick", "--image=busybox", f"--schedule={schedule}"
    )
    assert "spec.schedule: Invalid value" in refused
