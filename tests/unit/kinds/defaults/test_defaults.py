"""Upstream's defaults, and that nothing is changed in place."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds import defaults
from kcm.kinds.defaults import image_tag
from kcm.testing import builders
from tests.samples import sample


def apply_to(kind: str, version: str = "v1", **parts: Any) -> Any:
    obj = codec.decode({"apiVersion": version, "kind": kind, **parts}, BUILT_IN)
    return codec.to_dict(defaults.apply(obj))


def pod_spec(**spec: Any) -> Any:
    return apply_to("Pod", spec=spec)["spec"]


def container(**fields: Any) -> Any:
    return pod_spec(containers=[{"name": "c", "image": "i", **fields}])["containers"][0]


def test_a_bare_pod_gets_its_defaults() -> None:
    assert pod_spec(containers=[]) == {
        "containers": [],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    assert not apply_to("Pod")["status"]  # the strategy sets the phase


def test_what_is_given_stays() -> None:
    given = {
        "containers": [],
        "dnsPolicy": "None",
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "schedulerName": "mine",
        "securityContext": {"runAsUser": 0},
        "terminationGracePeriodSeconds": 0,
    }
    assert pod_spec(**given) == given
    assert apply_to("Pod", status={"phase": "Running"})["status"] == {"phase": "Running"}


def test_a_bare_container_gets_its_defaults() -> None:
    assert container() == {
        "name": "c",
        "image": "i",
        "imagePullPolicy": "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def test_init_and_ephemeral_containers_get_them_too() -> None:
    spec = pod_spec(initContainers=[{"name": "i"}], ephemeralContainers=[{"name": "e"}])
    for kind in ("initContainers", "ephemeralContainers"):
        assert spec[kind][0]["terminationMessagePolicy"] == "File"


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:latest", "latest"),
        ("nginx:1.25", "1.25"),
        ("registry:5000/nginx", "latest"),
        ("registry:5000/nginx:1.25", "1.25"),
        (f"nginx@sha256:{'a' * 64}", ""),
        (f"nginx:1.25@sha256:{'a' * 64}", "1.25"),
        (f"nginx:latest@sha256:{'a' * 64}", "latest"),
    ],
)
def test_the_tag_of_an_image_decides_whether_it_is_pulled_always(image: str, tag: str) -> None:
    assert image_tag(image) == tag
    expected = "Always" if tag == "latest" else "IfNotPresent"
    assert container(image=image)["imagePullPolicy"] == expected


@pytest.mark.parametrize("image", ["", "Nginx", "nginx:latest@sha256:abc", "a b"])
def test_what_is_no_images_name_is_not_pulled_always(image: str) -> None:
    assert container(image=image)["imagePullPolicy"] == "IfNotPresent"


def test_ports_speak_tcp_and_take_the_hosts_port_on_the_hosts_network() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostPort": 5353}]
    assert container(ports=ports)["ports"] == [
        {"containerPort": 80, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP", "hostPort": 5353},
    ]
    spec = pod_spec(hostNetwork=True, containers=[{"name": "c", "ports": ports}])
    assert [port["hostPort"] for port in spec["containers"][0]["ports"]] == [80, 5353]


def test_probes_get_their_times() -> None:
    probe = container(livenessProbe={"httpGet": {"port": 80}, "periodSeconds": 3})["livenessProbe"]
    assert probe == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert container(startupProbe={"grpc": {"port": 1}})["startupProbe"]["grpc"]["service"] == ""


def test_hooks_and_field_references_are_completed() -> None:
    full = container(
        lifecycle={"preStop": {"httpGet": {"port": 1}}, "postStart": {"exec": {}}},
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}, {"name": "B"}],
    )
    assert full["lifecycle"] == {
        "preStop": {"httpGet": {"port": 1, "path": "/", "scheme": "HTTP"}},
        "postStart": {"exec": {}},
    }
    assert full["env"] == [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x", "apiVersion": "v1"}}},
        {"name": "B"},
    ]


def test_volumes_get_a_source_and_modes() -> None:
    token = {"serviceAccountToken": {"path": "t"}}
    reference = {"path": "p", "fieldRef": {"fieldPath": "x"}}
    down = {"downwardAPI": {"items": [reference]}}
    spec = pod_spec(
        volumes=[
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "configMap": {"defaultMode": 1}},
            {"name": "d", "hostPath": {"path": "/"}},
            {"name": "e", "projected": {"sources": [token, down, {"secret": {}}]}},
            {"name": "f", **down},
            {"name": "g", "nfs": {"server": "s"}},
        ]
    )
    complete = {"items": [{"path": "p", "fieldRef": {"fieldPath": "x", "apiVersion": "v1"}}]}
    sources = [
        {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
        {"downwardAPI": complete},
        {"secret": {}},
    ]
    assert spec["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
        {"name": "c", "configMap": {"defaultMode": 1}},
        {"name": "d", "hostPath": {"path": "/", "type": ""}},
        {"name": "e", "projected": {"defaultMode": 420, "sources": sources}},
        {"name": "f", "downwardAPI": {"defaultMode": 420, **complete}},
        {"name": "g", "nfs": {"server": "s", "path": ""}},
    ]


def test_a_pod_requests_its_limits_and_a_template_does_not() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    complete = {"cpu": "1", "memory": "1Gi"}
    assert container(resources=resources)["resources"]["requests"] == complete
    template = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    full = apply_to("ReplicaSet", "apps/v1", spec={"template": template})
    kept = full["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert kept["requests"] == {"cpu": "1"}


def test_amounts_are_rounded_up_to_thousandths() -> None:
    body = container(resources={"requests": {"cpu": "100u", "memory": "1.0001"}})
    assert body["resources"]["requests"] == {"cpu": "1m", "memory": "1001m"}
    assert pod_spec(overhead={"cpu": "1n"})["overhead"] == {"cpu": "1m"}


def test_a_replica_set_has_one_replica_and_a_template_with_a_pods_defaults() -> None:
    spec = apply_to("ReplicaSet", "apps/v1")["spec"]
    assert spec["replicas"] == 1
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in spec["template"]["spec"]
    assert "selector" not in spec
    assert apply_to("ReplicaSet", "apps/v1", spec={"replicas": 0})["spec"]["replicas"] == 0


def test_a_namespace_bears_its_name_and_is_active() -> None:
    assert apply_to("Namespace", metadata={"name": "n", "labels": {"a": "b"}}) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "n", "labels": {"a": "b", "kubernetes.io/metadata.name": "n"}},
        "spec": {},
        "status": {"phase": "Active"},
    }
    assert "labels" not in apply_to("Namespace", metadata={"generateName": "n-"})["metadata"]


def test_a_namespace_that_is_being_deleted_gets_no_finalizer_back() -> None:
    metadata = {"name": "n", "deletionTimestamp": "2024-01-01T00:00:00Z"}
    assert apply_to("Namespace", metadata=metadata)["spec"] == {}


def test_a_node_can_allocate_its_capacity() -> None:
    status = apply_to("Node", status={"capacity": {"cpu": "4.0001"}})["status"]
    assert status == {"capacity": {"cpu": "4001m"}, "allocatable": {"cpu": "4001m"}}
    given = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    assert apply_to("Node", status=given)["status"] == given


def test_a_kind_without_defaults_stays_as_it_is() -> None:
    lease = builders.lease()
    assert defaults.apply(lease) is lease


@pytest.mark.parametrize(
    "obj",
    [builders.pod(), builders.replica_set(), builders.node(), builders.namespace()],
    ids=lambda obj: obj.kind,
)
def test_defaulting_twice_gives_the_very_same_object(obj: KubeObject) -> None:
    assert defaults.apply(obj) is obj


RICH = {
    "hostNetwork": True,
    "overhead": {"cpu": "1n"},
    "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
    "containers": [
        {
            "name": "c",
            "ports": [{"containerPort": 1}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
            "resources": {"limits": {"cpu": "1n"}},
            "livenessProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"httpGet": {"port": 1}}},
        }
    ],
}


def test_nothing_is_changed_in_place() -> None:
    bare = codec.decode({"apiVersion": "v1", "kind": "Pod", "spec": RICH}, BUILT_IN)
    before = codec.encode(bare)
    full = defaults.apply(bare)
    assert full is not bare
    assert codec.encode(bare) == before
    assert defaults.apply(full) is full


def test_pods_made_from_a_template_leave_the_template_alone() -> None:
    owner = builders.replica_set()
    before = codec.encode(owner)
    pod = builders.pod(owner=owner).with_spec(owner.spec.template.spec)
    assert defaults.apply(pod).spec.enable_service_links is True
    assert codec.encode(owner) == before


def service(**spec: Any) -> Any:
    return apply_to("Service", spec=spec)["spec"]


def test_a_bare_service_gets_its_defaults() -> None:
    assert service(ports=[{"port": 80}]) == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }


def test_what_a_service_gets_depends_on_its_type() -> None:
    node_port = service(type="NodePort")
    assert node_port["externalTrafficPolicy"] == "Cluster"
    assert service(type="LoadBalancer")["allocateLoadBalancerNodePorts"] is True
    assert service(externalIPs=["10.0.0.1"])["externalTrafficPolicy"] == "Cluster"
    assert "internalTrafficPolicy" not in service(type="ExternalName")


def test_a_sticky_service_forgets_its_clients_after_three_hours() -> None:
    config = service(sessionAffinity="ClientIP")["sessionAffinityConfig"]
    assert config == {"clientIP": {"timeoutSeconds": 10800}}
    assert "sessionAffinityConfig" not in service(sessionAffinityConfig={"clientIP": {}})


def test_the_address_of_a_load_balancer_is_a_virtual_one() -> None:
    status = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}, {"hostname": "a"}]}}
    ingress = apply_to("Service", status=status)["status"]["loadBalancer"]["ingress"]
    assert ingress == [{"ip": "10.0.0.1", "ipMode": "VIP"}, {"hostname": "a"}]


def job(**spec: Any) -> Any:
    return apply_to("Job", "batch/v1", spec=spec)["spec"]


def test_a_bare_job_runs_one_pod_to_its_end() -> None:
    spec = job()
    spec.pop("template")
    assert spec == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    }


def test_a_jobs_defaults_depend_on_what_is_given() -> None:
    assert "completions" not in job(parallelism=3)
    assert job(completions=3)["parallelism"] == 1
    assert job(backoffLimitPerIndex=0)["backoffLimit"] == 2**31 - 1
    rules = [{"action": "Count", "onPodConditions": [{"type": "a"}, {"type": "b", "status": ""}]}]
    spec = job(podFailurePolicy={"rules": rules})
    assert spec["podReplacementPolicy"] == "Failed"
    statuses = [c["status"] for c in spec["podFailurePolicy"]["rules"][0]["onPodConditions"]]
    assert statuses == ["True", "True"]


def test_a_cron_job_has_its_own_defaults_and_not_the_jobs() -> None:
    spec = apply_to("CronJob", "batch/v1", spec={"schedule": "@daily"})["spec"]
    template = spec.pop("jobTemplate")
    assert template["spec"].keys() == {"template"}
    assert template["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"
    assert spec == {
        "schedule": "@daily",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }


@pytest.mark.parametrize(
    ("item", "default", "request_"),
    [
        ({"max": {"cpu": "4"}}, "4", "4"),
        ({"max": {"cpu": "4"}, "default": {"cpu": "2"}}, "2", "2"),
        ({"min": {"cpu": "1"}, "default": {"cpu": "2"}}, "2", "2"),
        ({"min": {"cpu": "1"}}, None, "1"),
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, "2", "1"),
    ],
)
def test_defaults_of_containers_come_from_the_maximum_and_the_minimum(
    item: dict[str, Any], default: str | None, request_: str
) -> None:
    (obj,) = sample("limitranges", spec={"limits": [{"type": "Container", **item}]}).spec.limits
    amounts = ((obj.default or {}).get("cpu"), (obj.default_request or {}).get("cpu"))
    assert tuple(amount and str(amount) for amount in amounts) == (default, request_)


def test_other_types_have_no_such_defaults() -> None:
    spec = {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}
    (obj,) = sample("limitranges", spec=spec).spec.limits
    assert (obj.default, obj.default_request) == (None, None)
