"""The metrics of ValidatingAdmissionPolicies, under kube-apiserver's names.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/metrics/metrics.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

ALLOW, DENY, AUDIT, WARN = "allow", "deny", "audit", "warn"
_LABELS = ("policy", "policy_binding", "error_type", "enforcement_action")
_BUCKETS = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_NAME = "apiserver_validating_admission_policy_check"


class PolicyMetrics:
    """Counts the checks of policies, and how long they took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            _NAME,
            "Validation admission policy check total, labeled by policy and further identified by "
            "binding and enforcement action taken.",
            _LABELS,
            registry=registry,
        )
        self._seconds = Histogram(
            f"{_NAME}_duration_seconds",
            "Validation admission latency for individual validation expressions in seconds, "
            "labeled by policy and further including binding and enforcement action taken.",
            _LABELS,
            buckets=_BUCKETS,
            registry=registry,
        )

    def observe(
        self, policy: str, binding: str, error_type: str, action: str, seconds: float
    ) -> None:
        """Counts a check, by what was done. As upstream, one that holds is not counted."""
        labels = (policy, binding, error_type, action)
        self._total.labels(*labels).inc()
        self._seconds.labels(*labels).observe(seconds)
