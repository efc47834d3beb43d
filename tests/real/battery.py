"""What a controller manager has to do on a cluster: one case for each controller or promise."""

from __future__ import annotations

from collections.abc import Mapping

from tests.real import cluster_cases, garbage, workloads
from tests.real.runner import Case

CASES: Mapping[str, Case] = {
    case.__name__: case for case in (*workloads.CASES, *garbage.CASES, *cluster_cases.CASES)
}
# These take a minute, as the controllers wait that long.
SLOW: Mapping[str, Case] = {
    case.__name__: case for case in (workloads.cronjob, cluster_cases.podgc)
}
