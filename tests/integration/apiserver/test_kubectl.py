"""Everyday commands of kubectl, in its oldest and newest supported version."""

from __future__ import annotations

import json
import subprocess

from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.manifests import pod, replica_set


def test_apply_creates_then_configures_then_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=replica_set("web")).endswith("created\n")
    assert kubectl("apply", "-f", "-", stdin=replica_set("web")).endswith("unchanged\n")
    changed = replica_set("web", 3, "nginx:2")
    assert kubectl("apply", "-f", "-", stdin=changed).endswith("configured\n")
    stored = json.loads(kubectl("get", "rs", "web", "-o", "json"))
    assert stored["spec"]["replicas"] == 3
    assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


def test_apply_removes_what_the_file_no_longer_has(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=replica_set("web"))
    slim = replica_set("web")
    del slim["spec"]["template"]["spec"]["containers"][0]["env"]
    kubectl("apply", "-f", "-", stdin=slim)
    stored = json.loads(kubectl("get", "rs", "web", "-o", "json"))
    assert "env" not in stored["spec"]["template"]["spec"]["containers"][0]


def test_a_dry_run_on_the_server_stores_nothing(kubectl: Kubectl) -> None:
    out = kubectl("apply", "-f", "-", "--dry-run=server", stdin=replica_set("web"))
    assert "created (server dry run)" in out
    assert "not found" in kubectl.run_failing("get", "rs", "web")


def test_diff_shows_what_would_change_and_says_so_by_its_exit_code(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=replica_set("web"))
    assert kubectl.run("diff", "-f", "-", stdin=replica_set("web")).returncode == 0
    done = kubectl.run("diff", "-f", "-", stdin=replica_set("web", 7))
    assert done.returncode == 1
    assert "+  replicas: 7" in done.stdout


def test_all_three_kinds_of_patch_work(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=replica_set("web"))
    containers = [{"name": "c", "image": "nginx:3"}]
    strategic = {"spec": {"template": {"spec": {"containers": containers}}}}
    kubectl("patch", "rs", "web", "-p", json.dumps(strategic))
    kubectl("patch", "rs", "web", "--type=merge", "-p", '{"spec":{"replicas":1}}')
    operations = [{"op": "add", "path": "/spec/minReadySeconds", "value": 4}]
    kubectl("patch", "rs", "web", "--type=json", "-p", json.dumps(operations))
    spec = json.loads(kubectl("get", "rs", "web", "-o", "json"))["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert (container["image"], container["env"]) == ("nginx:3", [{"name": "A", "value": "1"}])
    assert (spec["replicas"], spec["minReadySeconds"]) == (1, 4)


def test_label_annotate_and_select(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    kubectl("create", "-f", "-", stdin=pod("p2"))
    kubectl("label", "pod", "p1", "tier=front")
    kubectl("annotate", "pod", "p1", "note=hello")
    assert kubectl("get", "pods", "-l", "tier in (front)", "-o", "name") == "pod/p1\n"
    assert kubectl("get", "pods", "-l", "!tier", "-o", "name") == "pod/p2\n"
    assert "hello" in kubectl("get", "pod", "p1", "-o", "yaml")
    kubectl("label", "pod", "p1", "tier-")
    assert kubectl("get", "pods", "-l", "tier", "-o", "name") == ""


def test_scale_a_replica_set(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=replica_set("web"))
    assert "scaled" in kubectl("scale", "rs", "web", "--replicas=5")
    assert "scaled" in kubectl("scale", "rs", "web", "--current-replicas=5", "--replicas=6")
    output = kubectl("get", "rs", "web", "-o", "jsonpath={.spec.replicas}")
    assert output == "6"


def test_status_is_patched_by_its_subresource_only(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    running = '{"status":{"phase":"Running"}}'
    kubectl("patch", "pod", "p1", "--subresource=status", "--type=merge", "-p", running)
    assert "Running" in kubectl("get", "pods", "--field-selector", "status.phase=Running")
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/p1", "--timeout=60s")


def test_describe_tells_of_pods_and_replica_sets(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=replica_set("web"))
    kubectl("create", "-f", "-", stdin=pod("p1"))
    assert "0 current / 2 desired" in kubectl("describe", "rs", "web")
    assert "nginx:1" in kubectl("describe", "pod", "p1")
    assert "Active" in kubectl("describe", "ns", kubectl.namespace)


def test_tables_have_upstreams_columns(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    header, row = kubectl("get", "pods", "-o", "wide").splitlines()
    assert header.split("  ")[0] == "NAME"
    assert [*header.split()] == [
        "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED", "NODE",
        "READINESS", "GATES",
    ]  # fmt: skip
    assert row.split()[:4] == ["p1", "0/1", "Pending", "0"]
    assert kubectl("get", "pods", "--show-labels").splitlines()[0].split()[-1] == "LABELS"
    assert kubectl("get", "pods", "-A").splitlines()[0].split()[0] == "NAMESPACE"


def test_delete_waits_until_the_object_is_gone(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    assert kubectl("delete", "pod", "p1").startswith('pod "p1" deleted')
    assert "NotFound" in kubectl.run_failing("get", "pod", "p1")
    kubectl("create", "-f", "-", stdin=pod("p2"))
    assert "deleted" in kubectl("delete", "pods", "--all")
    assert kubectl("get", "pods") == ""


def test_wait_for_deletion_ends_when_somebody_deletes(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    waiting = subprocess.Popen(
        kubectl.command("wait", "--for=delete", "pod/p1", "--timeout=20s"),
        env=kubectl.environment(),
        stdout=subprocess.DEVNULL,
    )
    kubectl("delete", "pod", "p1", "--wait=false")
    assert waiting.wait(20) == 0


def test_get_watch_shows_changes_as_they_come(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    watching = subprocess.Popen(
        kubectl.command("get", "pods", "-w"),
        env=kubectl.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().startswith("NAME")
        assert watching.stdout.readline().startswith("p1")
        kubectl("create", "-f", "-", stdin=pod("p2"))
        assert watching.stdout.readline().startswith("p2")
    finally:
        watching.kill()
        watching.communicate()


def test_edit_stores_what_the_editor_changed(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("p1"))
    out = kubectl("edit", "pod", "p1", EDITOR="sed -i s/nginx:1/nginx:9/")
    assert out == "pod/p1 edited\n"
    assert "nginx:9" in kubectl("get", "pod", "p1", "-o", "yaml")


def test_unknown_fields_are_refused_or_warned_of(kubectl: Kubectl) -> None:
    odd = pod("odd")
    odd["spec"]["containers"][0]["imgae"] = "x"
    assert 'unknown field "spec.containers[0].imgae"' in kubectl.run_failing(
        "create", "-f", "-", stdin=odd
    )
    done = kubectl.run("create", "-f", "-", "--validate=warn", stdin=odd)
    assert done.returncode == 0
    assert 'Warning: unknown field "spec.containers[0].imgae"' in done.stderr


def test_invalid_objects_are_explained(kubectl: Kubectl) -> None:
    bad = replica_set("web", -1)
    words = kubectl.run_failing("create", "-f", "-", stdin=bad)
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in words


def test_explain_and_api_resources(kubectl: Kubectl) -> None:
    assert "containers\t<[]Container>" in kubectl("explain", "pod.spec")
    assert "VERSION:    v1" in kubectl("explain", "replicaset")
    rows = [row.split() for row in kubectl("api-resources", "--no-headers").splitlines()]
    assert ["replicasets", "rs", "apps/v1", "true", "ReplicaSet"] in rows
    assert "apps/v1" in kubectl("api-versions")


def test_explain_says_what_each_field_means(kubectl: Kubectl) -> None:
    probe = kubectl("explain", "pod.spec.containers.livenessProbe")
    assert "Health check. If it fails, the container is restarted." in probe
    assert "Seconds between probes; default 10." in " ".join(probe.split())
    assert "Name of the user" in kubectl("explain", "tokenreview.status.user")
    assert "APIVersion defines" in kubectl("explain", "deployment.apiVersion")


def test_namespaces_are_created_and_then_end(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-made"
    assert kubectl("create", "namespace", name) == f"namespace/{name} created\n"
    kubectl("delete", "namespace", name, "--wait=false")
    words = kubectl.run_failing("-n", name, "create", "-f", "-", stdin=pod("late"))
    assert "because it is being terminated" in words
    assert "may not be deleted" in kubectl.run_failing("delete", "ns", "default")


def test_raw_paths_and_version(kubectl: Kubectl) -> None:
    assert "readyz check passed" in kubectl("get", "--raw", "/readyz?verbose")
    version = json.loads(kubectl("version", "-o", "json"))["serverVersion"]
    assert version["gitVersion"].startswith("v1.36.2+kcm.")


def test_server_side_apply_creates_conflicts_and_forces(kubectl: Kubectl) -> None:
    flags = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in kubectl(*flags, stdin=replica_set("web", 2))
    kubectl("scale", "rs", "web", "--replicas=5")
    words = kubectl.run_failing(*flags, stdin=replica_set("web", 2))
    assert "Apply failed with 1 conflict" in words
    assert ".spec.replicas" in words
    kubectl(*flags, "--force-conflicts", stdin=replica_set("web", 2))
    assert kubectl("get", "rs", "web", "-o", "jsonpath={.spec.replicas}") == "2"


def test_what_was_applied_on_the_client_moves_to_the_server(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=replica_set("web", 2))
    slim = replica_set("web", 3)
    del slim["spec"]["template"]["spec"]["containers"][0]["env"]
    kubectl("apply", "--server-side", "-f", "-", stdin=slim)
    stored = json.loads(kubectl("get", "rs", "web", "-o", "json"))
    assert stored["spec"]["replicas"] == 3
    assert "env" not in stored["spec"]["template"]["spec"]["containers"][0]


def test_run_set_image_and_replace(kubectl: Kubectl) -> None:
    kubectl("run", "one", "--image=nginx:1")
    kubectl("set", "image", "pod/one", "one=nginx:2")
    assert "nginx:2" in kubectl("get", "pod", "one", "-o", "yaml")
    kubectl("create", "-f", "-", stdin=pod("p1"))
    kubectl("replace", "--force", "-f", "-", stdin=pod("p1"))
    assert "Pending" in kubectl("get", "all")
