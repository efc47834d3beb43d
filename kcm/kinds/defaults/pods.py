"""Defaults of pods and pod templates.

Source: pkg/apis/core/v1/defaults.go and pkg/registry/core/pod/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Container, ContainerPort, EnvVar, Pod, PodSpec, Probe
from kcm.api.core_v1.handlers import Lifecycle, LifecycleHandler
from kcm.api.core_v1.security import PodSecurityContext
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each, round_to_milli
from kcm.kinds.defaults.disabled import without_disabled
from kcm.kinds.defaults.pod_resources import fill_pod_resources
from kcm.kinds.defaults.volumes import pull_policy, volume


def pod(pod: Pod) -> Pod:
    spec = fill_defaults(pod_spec(pod.spec), enable_service_links=True)
    # Defaults of pods that templates do not get: requests from limits, and host ports.
    for fill in (_requests, _host_ports) if spec.host_network else (_requests,):
        spec = change_fields(
            spec,
            containers=fill_each(spec.containers, fill),
            init_containers=fill_each(spec.init_containers, fill),
        )
    spec = fill_pod_resources(spec)
    return change_fields(pod, spec=spec)


def _requests(container: Container) -> Container:
    resources = container.resources
    missing = (resources.limits or {}).keys() - (resources.requests or {}).keys()
    if not missing:
        return container
    requests = {**(resources.limits or {}), **(resources.requests or {})}
    return container.replace(resources=resources.replace(requests=requests))


def pod_spec(spec: PodSpec) -> PodSpec:
    spec = change_fields(
        spec,
        containers=fill_each(spec.containers, _container),
        init_containers=fill_each(spec.init_containers, _container),
        ephemeral_containers=fill_each(spec.ephemeral_containers, _container),
        volumes=fill_each(spec.volumes, volume),
        overhead=round_to_milli(spec.overhead),
    )
    if spec.security_context is None:
        spec = spec.replace(security_context=PodSecurityContext())
    # The deprecated alias has the same value; objects have both fields.
    account = spec.service_account_name or spec.service_account
    if account:
        spec = change_fields(spec, service_account_name=account, service_account=account)
    return fill_defaults(
        without_disabled(spec),
        dns_policy="ClusterFirst",
        restart_policy="Always",
        scheduler_name="default-scheduler",
        termination_grace_period_seconds=30,
    )


def _host_ports(container: Container) -> Container:
    def port(container_port: ContainerPort) -> ContainerPort:
        return (
            container_port
            if container_port.host_port
            else container_port.replace(host_port=container_port.container_port)
        )

    return change_fields(container, ports=fill_each(container.ports, port))


def _container(container: Container) -> Container:
    resources = container.resources
    container = change_fields(
        container,
        ports=fill_each(container.ports, lambda port: fill_defaults(port, protocol="TCP")),
        env=fill_each(container.env, _variable),
        resources=change_fields(
            resources,
            limits=round_to_milli(resources.limits),
            requests=round_to_milli(resources.requests),
        ),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
        lifecycle=_lifecycle(container.lifecycle),
    )
    return fill_defaults(
        container,
        image_pull_policy=pull_policy(container.image or ""),
        termination_message_path="/dev/termination-log",
        termination_message_policy="File",
    )


def _variable(variable: EnvVar) -> EnvVar:
    if not variable.value_from:
        return variable
    source = variable.value_from
    if source.field_ref is not None:
        field = fill_defaults(source.field_ref, api_version="v1")
        source = change_fields(source, field_ref=field)
    if source.file_key_ref is not None:
        file_key = fill_defaults(source.file_key_ref, optional=False)
        source = change_fields(source, file_key_ref=file_key)
    return change_fields(variable, value_from=source)


def _probe(probe: Probe | None) -> Probe | None:
    if probe is None:
        return None
    if probe.http_get is not None:
        probe = change_fields(
            probe, http_get=fill_defaults(probe.http_get, path="/", scheme="HTTP")
        )
    if probe.grpc is not None:
        probe = change_fields(probe, grpc=fill_defaults(probe.grpc, service=""))
    return change_fields(
        probe,
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


def _lifecycle(hooks: Lifecycle | None) -> Lifecycle | None:
    if hooks is None:
        return None
    return change_fields(hooks, post_start=_hook(hooks.post_start), pre_stop=_hook(hooks.pre_stop))


def _hook(hook: LifecycleHandler | None) -> LifecycleHandler | None:
    if hook is None or hook.http_get is None:
        return hook
    return change_fields(hook, http_get=fill_defaults(hook.http_get, path="/", scheme="HTTP"))
