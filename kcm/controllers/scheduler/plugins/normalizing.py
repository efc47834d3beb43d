"""How the counts of a score become scores from 0 to 100, among feasible nodes.

Source: pkg/scheduler/framework/plugins/helper/normalize_score.go and NormalizeScore in
pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_SCORE = 100


def scale(counts: Sequence[int]) -> list[int]:
    """Returns scores from 0 for a count of 0 to 100 for the highest count."""
    most = max(counts)
    return [MAX_SCORE * count // most for count in counts] if most else [0] * len(counts)


def reverse(counts: Sequence[int]) -> list[int]:
    """Returns scores from 100 for a count of 0 to 0 for the highest count."""
    most = max(counts)
    if not most:
        return [MAX_SCORE] * len(counts)
    return [MAX_SCORE - MAX_SCORE * count // most for count in counts]


def stretch(sums: Sequence[int]) -> list[int]:
    """Returns scores from 0 for the lowest sum to 100 for the highest one."""
    least, most = min(sums), max(sums)
    if least == most:
        return [0] * len(sums)
    return [int(MAX_SCORE * ((value - least) / (most - least))) for value in sums]
