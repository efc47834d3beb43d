"""Defaults of a pod's own requests and limits."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.kinds import defaults


# TestSetDefaultPodRequests-like cases of defaults_test.go
@pytest.mark.parametrize(
    ("whole", "container", "expected"),
    [
        ({"limits": {"cpu": "2"}}, {}, {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}),
        ({"limits": {"cpu": "2"}}, {"requests": {"cpu": "1", "memory": "1Gi"}},
         {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}),
        ({"requests": {"cpu": "2"}}, {"requests": {"memory": "1Gi"}}, {"requests": {"cpu": "2"}}),
        ({"requests": {"cpu": "2"}}, {"limits": {"hugepages-2Mi": "4Mi"}},
         {"requests": {"cpu": "2", "hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}}),
    ],
)  # fmt: skip
def test_requests_of_a_pod_follow_from_its_limits_and_its_containers(
    whole: dict[str, Any], container: dict[str, Any], expected: dict[str, Any]
) -> None:
    containers = [{"name": "c", "image": "i", "resources": container}]
    body = {"metadata": {"name": "a"}, "spec": {"resources": whole, "containers": containers}}
    pod = codec.to_dict(defaults.apply(codec.decode(body, Pod.resource)))
    assert pod["spec"]["resources"] == expected
