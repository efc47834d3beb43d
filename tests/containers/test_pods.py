"""Pods as containers of containerd: what their programs see, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.containers import images, registry
from tests.containers.cluster import Cluster, Json, build_pod, is_ready, shell, status_of
from tests.containers.machine import ADDRESS

WAIT = "while true; do sleep 1; done"
PODS: list[Json] = []


def define(name: str, *containers: Json, **spec: Any) -> None:
    """Defines a pod of the tests.

    They are created together, since most of their time is waiting.
    """
    PODS.append(build_pod(name, *containers, **spec))


@pytest.fixture(scope="module", autouse=True)
def pods(cluster: Cluster) -> None:
    cluster.run("create", "configmap", "colours", "--from-literal=sky=blue")
    cluster.run("create", "secret", "generic", "keys", "--from-literal=door=1234")
    cluster.create_all(PODS)


def variable(name: str, **source: Json) -> Json:
    return {"name": name, "valueFrom": source}


def output(cluster: Cluster, name: str, container: str = "main") -> list[str]:
    """Waits until a pod is done; returns the lines of a container."""
    cluster.wait_until_done(name)
    return cluster.run("logs", name, "-c", container).splitlines()


SHARED = [{"name": "shared", "mountPath": "/shared"}]
define(
    "order",
    shell("cat /shared/*; echo main", volumeMounts=SHARED),
    initContainers=[
        shell("echo first > /shared/1", "first", volumeMounts=SHARED),
        shell(
            f"echo sidecar > /shared/2; {WAIT}", "sidecar", volumeMounts=SHARED,
            restartPolicy="Always",
            startupProbe={"exec": {"command": ["test", "-s", "/shared/2"]}, "periodSeconds": 1},
        ),
    ],
    volumes=[{"name": "shared", "emptyDir": {}}],
    restartPolicy="Never",
)  # fmt: skip


def test_init_containers_run_before_a_sidecar_and_the_container(cluster: Cluster) -> None:
    assert output(cluster, "order") == ["first", "sidecar", "main"]
    pod = cluster.pod("order")
    assert pod["status"]["phase"] == "Succeeded"
    assert status_of(pod)["imageID"].startswith("sha256:")
    assert status_of(pod)["containerID"].startswith("containerd://")


define(
    "seen",
    shell(
        "echo $SKY $IP $NODE; cat /config/sky /keys/door /info/name; echo; hostname; pwd; "
        "stat -Lc %a /keys/door; touch /config/x 2>/dev/null || echo unwritable; "
        "echo $KUBERNETES_SERVICE_HOST; "
        "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo reached",
        env=[
            variable("SKY", configMapKeyRef={"name": "colours", "key": "sky"}),
            variable("IP", fieldRef={"fieldPath": "status.podIP"}),
            variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
        ],
        volumeMounts=[
            {"name": "config", "mountPath": "/config", "readOnly": True},
            {"name": "keys", "mountPath": "/keys"},
            {"name": "info", "mountPath": "/info"},
        ],
        workingDir="/tmp",
    ),
    volumes=[
        {"name": "config", "configMap": {"name": "colours"}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o440}},
        {"name": "info", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ],
    restartPolicy="Never",
)  # fmt: skip


def test_programs_see_what_the_pod_says(cluster: Cluster) -> None:
    lines = output(cluster, "seen")
    pod = cluster.pod("seen")
    assert lines == [
        f"blue {pod['status']['podIP']} {pod['spec']['nodeName']}",
        "blue1234seen",
        "seen",
        "/tmp",
        "440",
        "unwritable",
        ADDRESS,
        "reached",
    ]


define(
    "names",
    shell("cat /etc/hosts /etc/resolv.conf"),
    hostAliases=[{"ip": "10.1.2.3", "hostnames": ["db", "db.local"]}],
    hostname="web",
    subdomain="shop",
    dnsPolicy="None",
    dnsConfig={
        "nameservers": ["10.9.9.9"],
        "searches": ["corp.example"],
        "options": [{"name": "ndots", "value": "3"}],
    },
    restartPolicy="Never",
)


def test_names_are_resolved_as_the_pod_says(cluster: Cluster) -> None:
    lines = output(cluster, "names")
    address = cluster.pod("names")["status"]["podIP"]
    assert f"{address}\tweb.shop.default.svc.cluster.local\tweb" in lines
    assert "10.1.2.3\tdb\tdb.local" in lines
    assert {"nameserver 10.9.9.9", "search corp.example", "options ndots:3"} <= set(lines)


define(
    "probed",
    shell(
        "mkdir -p /tmp/www; echo ok > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; "
        "exec sleep 1000",
        readinessProbe={"httpGet": {"port": 8080}, "periodSeconds": 1},
        livenessProbe={
            "exec": {"command": ["grep", "ok", "/tmp/www/index.html"]},
            "periodSeconds": 1,
        },
    ),
)


def test_probes_decide_over_readiness_and_restarts(cluster: Cluster) -> None:
    cluster.wait_until_ready("probed")
    cluster.run("exec", "probed", "--", "sh", "-c", "echo bad > /tmp/www/index.html")
    pod = cluster.wait_for(
        "probed", lambda pod: status_of(pod)["restartCount"] == 1 and is_ready(pod)
    )
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] in (137, 143)
    reasons = cluster.run(
        "get", "events", "-o", "jsonpath={.items[*].reason}",
        "--field-selector=involvedObject.name=probed",
    )  # fmt: skip
    assert "Unhealthy" in reasons


define(
    "last-words",
    shell("echo in a file > /dev/termination-log; exit 3", "file"),
    shell("echo in the log; exit 4", "log", terminationMessagePolicy="FallbackToLogsOnError"),
    shell("echo not this; echo but this > /why", "path", terminationMessagePath="/why"),
    {"name": "nothing", "image": images.BUSYBOX, "command": ["/no/such/program"]},
    restartPolicy="Never",
)


def test_a_container_says_why_it_ended(cluster: Cluster) -> None:
    pod = cluster.wait_until_done("last-words")
    ended = {
        name: status_of(pod, name)["state"]["terminated"]
        for name in ("file", "log", "path", "nothing")
    }
    said = {name: (end["exitCode"], end.get("message")) for name, end in ended.items()}
    assert said["file"] == (3, "in a file\n")
    assert said["log"] == (4, "in the log\n")
    assert said["path"] == (0, "but this\n")
    assert ended["nothing"]["reason"] == "StartError"
    assert "/no/such/program" in ended["nothing"]["message"]


LIMITS = {"limits": {"memory": "32Mi", "cpu": "200m"}, "requests": {"memory": "8Mi"}}
define("resized", shell(WAIT, resources=LIMITS))
define(
    "greedy",
    shell("head -c 100m /dev/zero | tail", resources={"limits": {"memory": "16Mi"}}),
    restartPolicy="Never",
)


def test_limits_are_enforced_and_changed_in_place(cluster: Cluster) -> None:
    # A container's own groups are the root of what it sees.
    read = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu/cpu.cfs_quota_us"

    def read_limits() -> list[str]:
        return cluster.run("exec", "resized", "--", "sh", "-c", read).split()

    def read_group(name: str) -> list[str]:
        """Returns the limits of a pod's own group."""
        uid = cluster.pod(name)["metadata"]["uid"]
        limits = ("memory/{}/memory.limit_in_bytes", "cpu/{}/cpu.cfs_quota_us")
        groups = (limit.format(f"kcm-*/burstable/pod{uid}") for limit in limits)
        return [next(Path("/sys/fs/cgroup").glob(group)).read_text().strip() for group in groups]

    cluster.wait_until_ready("resized")
    assert read_limits() == [str(32 * 1024**2), "20000"]
    larger = {"memory": "48Mi", "cpu": "300m"}
    for limits, megabytes, quota in ((larger, 48, 30_000), (LIMITS["limits"], 32, 20_000)):
        change = [{"name": "main", "resources": {"limits": limits}}]
        cluster.run(
            *("patch", "pod", "resized", "--subresource=resize"),
            *("-p", json.dumps({"spec": {"containers": change}})),
        )
        wanted = [str(megabytes * 1024**2), str(quota)]
        until(lambda: read_limits() == wanted, f"{limits}")  # noqa: B023 - called at once
        until(lambda: read_group("resized") == wanted, f"{limits} of the pod")  # noqa: B023
    pod = cluster.pod("resized")
    assert status_of(pod)["restartCount"] == 0
    ended = status_of(cluster.wait_until_done("greedy"))["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


define(
    "bare",
    shell(
        "id; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; "
        "touch /x 2>/dev/null || echo read-only; touch /vol/x; stat -c %g /vol /vol/x",
        securityContext={
            "runAsUser": 1000,
            "runAsGroup": 2000,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        volumeMounts=[{"name": "vol", "mountPath": "/vol"}],
    ),
    securityContext={"fsGroup": 3000, "supplementalGroups": [4000]},
    volumes=[{"name": "vol", "emptyDir": {}}],
    restartPolicy="Never",
)
define(
    "mighty",
    shell("grep CapEff /proc/self/status; mount -t tmpfs x /mnt 2>&1 || mkdir /m && echo could",
          securityContext={"privileged": True}),
    restartPolicy="Never",
)  # fmt: skip


def test_privileges_are_those_of_the_security_context(cluster: Cluster) -> None:
    lines = output(cluster, "bare")
    assert lines[0] == "uid=1000 gid=2000 groups=2000,3000,4000"
    assert lines[1:5] == [
        "CapEff:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "read-only",
    ]
    assert output(cluster, "mighty")[0] != "CapEff:\t00000000a80425fb"


for name, image in (("root", images.BUSYBOX), ("nobody", images.NOBODY)):
    define(name, shell("true") | {"image": image, "securityContext": {"runAsNonRoot": True}})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("root", "container has runAsNonRoot and image will run as root"),
        ("nobody", "image has non-numeric user (nobody), cannot verify user is non-root"),
    ],
)
def test_an_image_that_may_run_as_root_is_refused_where_that_is_forbidden(
    cluster: Cluster, name: str, words: str
) -> None:
    pod = cluster.wait_for(name, lambda pod: waits(pod).get("message"))
    assert waits(pod)["reason"] == "CreateContainerConfigError"
    assert words in waits(pod)["message"]


def waits(pod: Json) -> Json:
    """Returns why the main container waits, {} if it does not."""
    if not pod["status"].get("containerStatuses"):
        return {}
    waiting: Json = status_of(pod)["state"].get("waiting", {})
    return waiting


for policy in ("Never", "IfNotPresent"):
    missing = {"image": "127.0.0.1:1/nosuch:1", "imagePullPolicy": policy}
    define(f"missing-{policy.lower()}", shell("true") | missing)


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [("never", {"ErrImageNeverPull"}), ("ifnotpresent", {"ErrImagePull", "ImagePullBackOff"})],
)
def test_an_image_that_is_not_there_is_told(
    cluster: Cluster, policy: str, reasons: set[str]
) -> None:
    cluster.wait_for(f"missing-{policy}", lambda pod: waits(pod).get("reason") in reasons)


def test_an_image_is_pulled_by_who_has_its_password(cluster: Cluster) -> None:
    with cluster.registry() as name:
        cluster.run(
            "create", "secret", "docker-registry", "registry", "--docker-server=127.0.0.1:5000",
            f"--docker-username={registry.USER}", f"--docker-password={registry.PASSWORD}",
        )  # fmt: skip
        image = {"image": name}
        cluster.create("stranger", shell("true") | image)
        refused = cluster.wait_for("stranger", lambda pod: "401" in waits(pod).get("message", ""))
        assert waits(refused)["reason"] in ("ErrImagePull", "ImagePullBackOff")
        secret = [{"name": "registry"}]
        cluster.create(
            "friend", shell("echo pulled") | image, imagePullSecrets=secret, restartPolicy="Never"
        )
        assert output(cluster, "friend") == ["pulled"]
    pulled = status_of(cluster.pod("friend"))
    assert pulled["imageID"].startswith("127.0.0.1:5000/team/app@sha256:")
    assert pulled["image"] == image["image"]


define(
    "of-node",
    shell("ps; ip -o addr show node0"),
    hostPID=True,
    hostNetwork=True,
    restartPolicy="Never",
)
define(
    "shared",
    shell(f"exec sleep 1234 & {WAIT}", "other"),
    shell("while ! ps | grep -q 'sleep [1]234'; do sleep 0.1; done; echo seen; " + WAIT),
    shareProcessNamespace=True,
)


def test_namespaces_are_shared_as_the_pod_says(cluster: Cluster) -> None:
    lines = output(cluster, "of-node")
    assert any("containerd --config" in line for line in lines)
    assert any("10.99.0.2" in line for line in lines)
    assert cluster.pod("of-node")["status"]["podIP"] == cluster.pod("of-node")["status"]["hostIP"]
    cluster.wait_until_ready("shared")
    cluster.wait_for("shared", lambda _: "seen" in cluster.run("logs", "shared", "-c", "main"))


define("target", shell("exec sleep 4321"))


def test_a_container_for_debugging_sees_the_processes_of_its_target(cluster: Cluster) -> None:
    cluster.wait_until_ready("target")
    cluster.run(
        "debug", "target", "-c", "debugger", f"--image={images.BUSYBOX}", "--target=main",
        "--image-pull-policy=Never", "--profile=general", "--", "ps",
    )  # fmt: skip
    pod = cluster.wait_for(
        "target",
        lambda pod: pod["status"].get("ephemeralContainerStatuses", [{}])[0]
        .get("state", {}).get("terminated"),
    )  # fmt: skip
    assert status_of(pod, "debugger")["state"]["terminated"]["exitCode"] == 0
    assert "sleep 4321" in cluster.run("logs", "target", "-c", "debugger")
