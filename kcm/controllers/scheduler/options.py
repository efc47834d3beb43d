"""The scheduler's options.

Source: pkg/scheduler/apis/config/types.go and v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.sdk import Options


class SchedulerOptions(Options):
    """The options of the scheduler."""

    scheduler_names: str = Field(
        default="default-scheduler",
        description="The values of spec.schedulerName, separated by commas, whose pods kcm "
        "binds: upstream's profiles. Pods of other schedulers are left to them",
    )
    percentage_of_nodes_to_score: int = Field(
        default=0,
        ge=0,
        le=100,
        description="The percentage of all nodes that, once found feasible for a pod, ends the "
        "search. 0: by the size of the cluster, from 50 at 100 nodes down to 5",
    )
    pod_initial_backoff_seconds: int = Field(
        default=1, ge=1, description="Seconds until a pod that found no node is tried again"
    )
    pod_max_backoff_seconds: int = Field(
        default=10, ge=1, description="Seconds to which the backoff of a pod doubles at most"
    )
    pod_max_in_unschedulable_pods_duration: float = Field(
        default=300.0,
        gt=0,
        description="Seconds after which a pod that found no node is tried again even without "
        "a cluster event that could help it",
    )
    hard_pod_affinity_weight: int = Field(
        default=1,
        ge=0,
        le=100,
        description="The weight, in scores, of the required affinity of pods on a node to the "
        "pod that is being scheduled",
    )
    min_candidate_nodes_percentage: int = Field(
        default=10,
        ge=0,
        le=100,
        description="The least percentage of nodes tried for preemption",
    )
    min_candidate_nodes_absolute: int = Field(
        default=100, ge=1, description="The least number of nodes tried for preemption"
    )

    @property
    def names(self) -> frozenset[str]:
        """The scheduler names whose pods kcm binds."""
        return frozenset(name.strip() for name in self.scheduler_names.split(",") if name.strip())
