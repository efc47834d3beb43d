"""To which path of the kubelet streams to pods are passed on."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.egress.object_proxy import is_proxy
from kcm.apiserver.egress.streams import is_stream, path_of
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import RequestInfo, parse
from kcm.testing import builders

PODS = Pod.resource
POD = builders.pod("web", containers=[builders.container("a"), builders.container("b")])


def request(query: str) -> Request:
    return Request("GET", "/x", query.encode(), {})


@pytest.mark.parametrize(
    ("subresource", "query", "expected"),
    [
        (
            "exec", "container=a&command=ls&command=-l&stdout=true&stderr=true",
            "/exec/default/web/a?output=1&error=1&command=ls&command=-l",
        ),
        (
            "exec", "container=b&command=sh&stdin=true&stdout=true&tty=true",
            "/exec/default/web/b?input=1&output=1&tty=1&command=sh",
        ),
        ("attach", "container=a&stdin=1&stdout=0", "/attach/default/web/a?input=1"),
        ("portforward", "", "/portForward/default/web"),
        ("portforward", "ports=80&ports=81%2C82", "/portForward/default/web?port=80&port=81%2C82"),
    ],
)  # fmt: skip
def test_a_kubelet_is_asked_in_its_own_words(subresource: str, query: str, expected: str) -> None:
    target = RequestInfo(PODS, "default", "web", subresource)
    assert path_of(target, POD, request(query)) == expected


@pytest.mark.parametrize(
    ("subresource", "query", "words"),
    [
        ("exec", "container=a", "you must specify at least 1 command"),
        ("exec", "command=ls", "a container name must be specified for pod web"),
        ("attach", "container=c", "container c is not valid for pod web"),
    ],
)
def test_what_nobody_could_answer_is_refused(subresource: str, query: str, words: str) -> None:
    with pytest.raises(errors.BadRequest, match=words):
        path_of(RequestInfo(PODS, "default", "web", subresource), POD, request(query))


@pytest.mark.parametrize(
    ("path", "stream", "proxy"),
    [
        ("/api/v1/namespaces/d/pods/p/exec", True, False),
        ("/api/v1/namespaces/d/pods/p/portforward", True, False),
        ("/api/v1/namespaces/d/pods/p/log", False, False),
        ("/api/v1/namespaces/d/pods/p/proxy", False, True),
        ("/api/v1/namespaces/d/services/https:p:1/proxy/x/y", False, True),
        ("/api/v1/nodes/n/proxy", False, True),
        ("/api/v1/nodes/n/proxy/metrics/resource", False, True),
        ("/api/v1/nodes/n/status", False, False),
    ],
)
def test_some_requests_are_passed_on(path: str, stream: bool, proxy: bool) -> None:
    target = parse(path, BUILT_IN)
    assert (is_stream(target), is_proxy(target)) == (stream, proxy)
