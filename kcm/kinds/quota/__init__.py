"""Computes how much of a namespace's quotas objects use.

The functions are pure; `kcm.store.admission.quotas` enforces the quotas.

Source: pkg/quota/v1, staging/src/k8s.io/apiserver/pkg/quota/v1 and
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota, Kubernetes 1.36. Not implemented:
resources that are limited by configuration even without a quota (`limitedResources`).
"""

from kcm.kinds.quota.charging import Excess, charged
from kcm.kinds.quota.evaluators import Evaluator, evaluator_of, is_tracked, used_by

__all__ = ["Evaluator", "Excess", "charged", "evaluator_of", "is_tracked", "used_by"]
