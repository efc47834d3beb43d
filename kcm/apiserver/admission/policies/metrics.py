"""The metrics of admission policies, under kube-apiserver's names.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/{validating,mutating}/metrics,
Kubernetes 1.36.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

ALLOW, DENY, AUDIT, WARN = "allow", "deny", "audit", "warn"
_BUCKETS = (0.0000005, 0.001, 0.01, 0.1, 1.0)


class _Checks:
    """Counts what policies of one sort do, and how long that takes."""

    def __init__(self, sort: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        name = f"apiserver_{sort}_admission_policy_check"
        about = f"{sort} admission policy check"
        self._total = Counter(name, f"Number of {about}s.", labels, registry=registry)
        self._seconds = Histogram(
            f"{name}_duration_seconds",
            f"Seconds that each expression of a {about} took.",
            labels,
            buckets=_BUCKETS,
            registry=registry,
        )

    def count(self, labels: tuple[str, ...], seconds: float) -> None:
        self._total.labels(*labels).inc()
        self._seconds.labels(*labels).observe(seconds)


class PolicyMetrics:
    """Counts the checks of ValidatingAdmissionPolicies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("policy", "policy_binding", "error_type", "enforcement_action")
        self._checks = _Checks("validating", labels, registry)

    def observe(
        self, policy: str, binding: str, error_type: str, action: str, seconds: float
    ) -> None:
        """Counts a check, by what was done. As upstream, one that holds is not counted."""
        self._checks.count((policy, binding, error_type, action), seconds)


class MutationMetrics:
    """Counts the mutations of MutatingAdmissionPolicies."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("policy", "policy_binding", "error_type")
        self._checks = _Checks("mutating", labels, registry)

    def observe(self, policy: str, binding: str, error_type: str, seconds: float) -> None:
        """Counts a mutation, by what was wrong with it."""
        self._checks.count((policy, binding, error_type), seconds)
