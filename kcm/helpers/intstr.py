"""Amounts that are a number or a percentage.

Source: GetScaledValueFromIntOrPercent in staging/src/k8s.io/apimachinery/pkg/util/intstr/intstr.go,
Kubernetes 1.33.
"""

from __future__ import annotations


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Returns the number, or the percentage of `total`. None is 0.

    The value has been validated: text without a percent sign is a number. Raises ValueError for
    other text.
    """
    if isinstance(value, str) and value.endswith("%"):
        hundredths = int(value[:-1]) * total
        return -(-hundredths // 100) if round_up else hundredths // 100
    return int(value or 0)
