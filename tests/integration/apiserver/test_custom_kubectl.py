"""Custom kinds with kubectl, in its oldest and newest supported version."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.integration.apiserver.definitions import crontab, crontabs
from tests.integration.apiserver.kubectl import Kubectl


@pytest.fixture
def group(kubectl: Kubectl) -> str:
    """Returns a group with CronTabs that are established."""
    name = f"{kubectl.namespace}.example.com"
    assert "created" in kubectl("apply", "-f", "-", stdin=crontabs(name))
    kubectl("wait", "--for=condition=Established", f"crd/crontabs.{name}", "--timeout=60s")
    return name


def test_apply_get_patch_edit_and_scale(kubectl: Kubectl, group: str) -> None:
    kind = f"crontabs.{group}"
    assert "created" in kubectl("apply", "-f", "-", stdin=crontab(group, "one", image="x"))
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=crontab(group, "one", image="x"))
    assert "configured" in kubectl("apply", "-f", "-", stdin=crontab(group, "one", image="old"))
    kubectl("patch", kind, "one", "--type=merge", "-p", '{"spec":{"replicas":2}}')
    assert "is not supported" in kubectl.run_failing("patch", kind, "one", "-p", '{"spec":{}}')
    assert "edited" in kubectl("edit", kind, "one", EDITOR="sed -i s/image:.old/image:\\ new/")
    assert "scaled" in kubectl("scale", kind, "one", "--replicas=3")
    spec = json.loads(kubectl("get", kind, "one", "-o", "json"))["spec"]
    assert (spec["image"], spec["replicas"]) == ("new", 3)
    good = '{"status":{"phase":"Good"}}'
    kubectl("patch", kind, "one", "--subresource=status", "--type=merge", "-p", good)
    kubectl("wait", "--for=jsonpath={.status.phase}=Good", f"{kind}/one", "--timeout=60s")
    assert "Good" in kubectl("describe", kind, "one")


def test_columns_categories_and_short_names(kubectl: Kubectl, group: str) -> None:
    kubectl("create", "-f", "-", stdin=crontab(group, "one"))
    header, row = kubectl("get", f"crontabs.{group}").splitlines()
    assert header.split() == ["NAME", "SPEC", "AGE"]
    assert row.startswith("one ")
    assert "REPLICAS" in kubectl("get", f"ct{kubectl.namespace}", "-o", "wide")
    assert f"crontab.{group}/one" in kubectl("get", "all")
    beta = kubectl("get", f"crontabs.v1beta1.{group}", "one", "-o", "jsonpath={.apiVersion}")
    assert beta == f"{group}/v1beta1"


def test_explain_and_api_resources(kubectl: Kubectl, group: str) -> None:
    stored, other = ("--api-version", f"{group}/v1"), ("--api-version", f"{group}/v1beta1")
    assert "What is to run, and when." in kubectl("explain", "crontabs.spec", *stored)
    assert "<[]Object>" in kubectl("explain", "crontabs.spec.env", *other)
    rows = kubectl("api-resources", "--api-group", group, "--no-headers").split()
    assert rows == ["crontabs", f"ct{kubectl.namespace}", f"{group}/v1", "true", "CronTab"]


def test_what_is_wrong_is_told_before_and_after_sending(kubectl: Kubectl, group: str) -> None:
    odd = crontab(group, "odd", foo=1)
    assert 'unknown field "spec.foo"' in kubectl.run_failing("create", "-f", "-", stdin=odd)
    done = kubectl.run("create", "-f", "-", "--validate=warn", stdin=odd)
    assert 'Warning: unknown field "spec.foo"' in done.stderr
    wrong = crontab(group, "wrong", replicas="string")
    words = kubectl.run_failing("create", "-f", "-", "--validate=ignore", stdin=wrong)
    assert 'spec.replicas in body must be of type integer: "string"' in words
    ruled = crontab(group, "ruled", replicas=9)
    assert "busybox does not scale" in kubectl.run_failing("create", "-f", "-", stdin=ruled)


def test_server_side_apply(kubectl: Kubectl, group: str) -> None:
    flags = ("apply", "--server-side", "-f", "-")
    kubectl(*flags, stdin=crontab(group, "one", env=[{"name": "a"}]))
    more = crontab(group, "one", env=[{"name": "b"}])
    kubectl(*flags, "--field-manager=other", stdin=more)
    names = kubectl("get", f"crontabs.{group}", "one", "-o", "jsonpath={.spec.env[*].name}")
    assert names == "a b"


def test_get_watch_shows_changes_as_they_come(kubectl: Kubectl, group: str) -> None:
    kubectl("create", "-f", "-", stdin=crontab(group, "one"))
    watching = subprocess.Popen(
        kubectl.command("get", f"crontabs.{group}", "-w"),
        env=kubectl.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().startswith("NAME")
        assert watching.stdout.readline().startswith("one")
        kubectl("create", "-f", "-", stdin=crontab(group, "two"))
        assert watching.stdout.readline().startswith("two")
    finally:
        watching.kill()
        watching.communicate()


def test_deleting_the_definition_deletes_its_objects(kubectl: Kubectl, group: str) -> None:
    kubectl("create", "-f", "-", stdin=crontab(group, "one"))
    assert "deleted" in kubectl("delete", "crd", f"crontabs.{group}", "--timeout=60s")
    words = kubectl.run_failing("get", f"crontabs.{group}")
    assert "could not find the requested resource" in words or "doesn't have" in words
    kubectl("apply", "-f", "-", stdin=crontabs(group))
    kubectl("wait", "--for=condition=Established", f"crd/crontabs.{group}", "--timeout=60s")
    assert kubectl("get", f"crontabs.{group}") == ""


def test_events_show_through_both_groups(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": kubectl.namespace},
        "reason": "Tested",
        "message": "it works",
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    kubectl("create", "-f", "-", stdin=event)
    assert "it works" in kubectl("events")
    assert "it works" in kubectl("get", "events")
    assert "it works" in kubectl("get", "events.events.k8s.io")
    note = kubectl("get", "events.v1.events.k8s.io", "e", "-o", "jsonpath={.note}")
    assert note == "it works"
