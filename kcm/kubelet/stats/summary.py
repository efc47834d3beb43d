"""Builds the response of /stats/summary: a pure function.

Source: staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kcm.apimachinery.meta_v1 import format_time
from kcm.kubelet.stats.provider import ContainerUsage, PodStats, StatsSummary

_BILLION = 10**9


def build_summary(node_name: str, stats: StatsSummary) -> dict[str, Any]:
    """Returns the body of /stats/summary, ready to be encoded as JSON."""
    machine, at = stats.machine, format_time(stats.machine.at)
    node: dict[str, Any] = {
        "nodeName": node_name,
        "startTime": format_time(datetime.fromtimestamp(machine.started_at, UTC)),
        "cpu": _cpu(at, machine.cpu, stats.cores),
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
    if machine.max_pids:
        node["rlimit"] = {"time": at, "maxpid": machine.max_pids, "curproc": machine.pids}
    return {"node": node, "pods": [_pod(pod, at) for pod in stats.pods]}


def _cpu(at: str, total: int, cores: float | None) -> dict[str, Any]:
    rate = {} if cores is None else {"usageNanoCores": round(cores * _BILLION)}
    return {"time": at, **rate, "usageCoreNanoSeconds": total}


def _pod(pod: PodStats, at: str) -> dict[str, Any]:
    starts = [
        container.started_at for container in pod.containers if container.started_at is not None
    ]
    logs = sum(container.log_bytes for container in pod.containers)
    return {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": format_time(min(starts)) if starts else None,
        "containers": [_container(container) for container in pod.containers],
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


def _container(container: ContainerUsage) -> dict[str, Any]:
    at = format_time(container.at)
    return {
        "name": container.name,
        "startTime": format_time(container.started_at) if container.started_at else None,
        "cpu": _cpu(at, container.cpu, container.cores),
        "memory": {
            "time": at,
            "usageBytes": container.memory_usage,
            "workingSetBytes": container.memory,
        },
        "logs": {"time": at, "usedBytes": container.log_bytes},
    }
