"""Static pods: their names end with their node's, and their uid stays while their text does."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.kubelet.config.static import parse_pods
from kcm.kubelet.types import HASH_ANNOTATION

TEXT = b"""
metadata: {name: web}
spec:
  containers: [{name: main, image: x, command: [sleep, "1"]}]
"""


def test_a_static_pod_belongs_to_its_node() -> None:
    (pod,) = parse_pods(TEXT, "/etc/web.yaml", "file", "n1")
    assert pod.key == "default/web-n1"
    assert pod.spec.node_name == "n1"
    assert pod.spec.restart_policy == "Always"
    assert pod.annotations[HASH_ANNOTATION] == pod.uid
    assert any(t.operator == "Exists" for t in pod.spec.tolerations or ())


def test_its_uid_depends_on_text_place_and_node() -> None:
    uids = {
        parse_pods(text, place, "file", node)[0].uid
        for text in (TEXT, TEXT.replace(b'"1"', b'"2"'))
        for place in ("/a.yaml", "/b.yaml")
        for node in ("n1", "n2")
    }
    assert len(uids) == 8
    again = parse_pods(TEXT, "/a.yaml", "file", "n1")[0].uid
    assert again in uids


@pytest.mark.parametrize(
    "text",
    [b"", b"kind: Pod\nspec: [", b"kind: Pod\nspec: {containers: []}", b"metadata: {name: Web_1}",
     b"metadata: {name: a}\nspec: {containers: [{name: A B}]}"],
)  # fmt: skip
def test_what_is_no_pod_is_refused(text: bytes) -> None:
    with pytest.raises(errors.KcmError):
        parse_pods(text, "/etc/web.yaml", "file", "n1")
