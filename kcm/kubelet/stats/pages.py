"""/stats/summary and /metrics/resource: pure.

Source: staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go and
pkg/kubelet/metrics/collectors/resource_metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kcm.apimachinery.times import format_time
from kcm.kubelet.stats.provider import ContainerUse, PodUse, Summary

_BILLION = 10**9


def summary_page(node: str, found: Summary) -> dict[str, Any]:
    """What /stats/summary answers."""
    machine, at = found.machine, format_time(found.machine.at)
    about: dict[str, Any] = {
        "nodeName": node,
        "startTime": format_time(datetime.fromtimestamp(machine.started_at, UTC)),
        "cpu": _cpu(at, machine.cpu, found.cores),
        "memory": {
            "time": at,
            "availableBytes": machine.memory_available,
            "usageBytes": machine.working_set,
            "workingSetBytes": machine.working_set,
        },
        "fs": {
            "time": at,
            "availableBytes": machine.disk_available,
            "capacityBytes": machine.disk,
            "usedBytes": machine.disk - machine.disk_available,
            "inodesFree": machine.inodes_free,
            "inodes": machine.inodes,
            "inodesUsed": machine.inodes - machine.inodes_free,
        },
    }
    if machine.most_pids:
        about["rlimit"] = {"time": at, "maxpid": machine.most_pids, "curproc": machine.pids}
    return {"node": about, "pods": [_pod(pod, at) for pod in found.pods]}


def _cpu(at: str, total: int, cores: float | None) -> dict[str, Any]:
    rate = {} if cores is None else {"usageNanoCores": round(cores * _BILLION)}
    return {"time": at, **rate, "usageCoreNanoSeconds": total}


def _pod(pod: PodUse, at: str) -> dict[str, Any]:
    starts = [one.started_at for one in pod.containers if one.started_at is not None]
    logs = sum(one.log_bytes for one in pod.containers)
    return {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": format_time(min(starts)) if starts else None,
        "containers": [_container(one) for one in pod.containers],
        "cpu": _cpu(at, pod.cpu, pod.cores),
        "memory": {"time": at, "workingSetBytes": pod.memory},
        "volume": [
            {"time": at, "name": name, "usedBytes": size}
            for name, size in sorted(pod.disk.volumes.items())
        ],
        "ephemeral-storage": {
            "time": at,
            "usedBytes": pod.disk.size + logs,
            "inodesUsed": pod.disk.files,
        },
        "process_stats": {"process_count": pod.processes},
    }


def _container(one: ContainerUse) -> dict[str, Any]:
    at = format_time(one.at)
    return {
        "name": one.name,
        "startTime": format_time(one.started_at) if one.started_at else None,
        "cpu": _cpu(at, one.cpu, one.cores),
        "memory": {
            "time": at,
            "usageBytes": one.memory_usage,
            "workingSetBytes": one.memory,
        },
        "logs": {"time": at, "usedBytes": one.log_bytes},
    }


def resource_page(found: Summary) -> str:
    """What /metrics/resource answers, in Prometheus' text format."""
    lines: list[str] = []
    millis = _millis(found.machine.at)

    def family(name: str, words: str, kind: str) -> None:
        lines.extend([f"# HELP {name} {words}", f"# TYPE {name} {kind}"])

    name = "node_cpu_usage_seconds_total"
    family(name, "Cumulative cpu time consumed by the node in core-seconds", "counter")
    lines.append(f"{name} {found.machine.cpu / _BILLION:.9g} {millis}")
    name = "node_memory_working_set_bytes"
    family(name, "Current working set of the node in bytes", "gauge")
    lines.append(f"{name} {found.machine.working_set} {millis}")
    for name, words, kind in _FAMILIES:
        family(name, words, kind)
        for pod in found.pods:
            for labels, value in _values(name, pod):
                lines.append(f"{name}{{{labels}}} {value} {millis}")
    name = "resource_scrape_error"
    family(name, "1 if there was an error while getting container metrics, 0 otherwise", "gauge")
    lines.append(f"{name} 0")
    return "\n".join(lines) + "\n"


_FAMILIES = (
    (
        "container_cpu_usage_seconds_total",
        "Cumulative cpu time consumed by the container in core-seconds",
        "counter",
    ),
    (
        "container_memory_working_set_bytes",
        "Current working set of the container in bytes",
        "gauge",
    ),
    (
        "container_start_time_seconds",
        "Start time of the container since unix epoch in seconds",
        "gauge",
    ),
    (
        "pod_cpu_usage_seconds_total",
        "Cumulative cpu time consumed by the pod in core-seconds",
        "counter",
    ),
    ("pod_memory_working_set_bytes", "Current working set of the pod in bytes", "gauge"),
)


def _values(name: str, pod: PodUse) -> list[tuple[str, str]]:
    """Labels and values of one family for one pod. Names need no escapes."""
    of_pod = f'namespace="{pod.namespace}",pod="{pod.name}"'
    if name.startswith("pod_"):
        value = f"{pod.cpu / _BILLION:.9g}" if "cpu" in name else str(pod.memory)
        return [(of_pod, value)] if pod.containers else []
    found = []
    for one in pod.containers:
        if "cpu" in name:
            value = f"{one.cpu / _BILLION:.9g}"
        elif "memory" in name:
            value = str(one.memory)
        else:
            value = f"{one.started_at.timestamp():.3f}" if one.started_at else "0"
        found.append((f'container="{one.name}",{of_pod}', value))
    return found


def _millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)
