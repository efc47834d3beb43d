"""Finds the target of an autoscaler, which is any object whose kind has a scale, and its pods.

Source: reconcileAutoscaler and validateAndParseSelector in
pkg/controller/podautoscaler/horizontal.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcm import errors
from kcm.api.autoscaling_v2 import CrossVersionObjectReference, HorizontalPodAutoscaler
from kcm.api.core_v1 import Pod
from kcm.api.scaling import Scale, scale_of
from kcm.api.scheme import Kinds, Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.sdk import View


class TargetError(Exception):
    """Raised when the target cannot be scaled; the message says why.

    `of_spec` says whether the autoscaler's spec is the cause.
    """

    def __init__(self, why: str, *, of_spec: bool = False) -> None:
        super().__init__(why)
        self.of_spec = of_spec


class SelectorError(Exception):
    """Raised when the target's pods cannot be selected.

    `reason` and `message` are those of the condition; the Event has the reason `event` and the text
    of the exception as its message.
    """

    def __init__(self, reason: str, message: str, event: str = "", event_message: str = "") -> None:
        super().__init__(event_message or message)
        self.reason = reason
        self.message = message
        self.event = event or reason


@dataclass(frozen=True)
class ScaleTarget:
    """The object that an autoscaler scales, with its resource and its scale."""

    resource: Resource
    obj: KubeObject
    scale: Scale
    replicas: int  # the replicas in its spec


def target_of(hpa: HorizontalPodAutoscaler, view: View) -> ScaleTarget:
    """Returns the target of an autoscaler. Raises TargetError."""
    reference = hpa.spec.scale_target_ref
    resource = _find_resource(reference, view.scheme)
    obj = view.lister(resource.model).find(f"{hpa.namespace}/{reference.name}")
    if obj is None:
        where = f"{resource.plural}/scale" + (f".{resource.group}" if resource.group else "")
        raise TargetError(f'{where} "{reference.name}" not found')
    scale = scale_of(obj, resource)
    if scale.replicas is None:
        path = resource.scale.replicas if resource.scale else ""
        raise TargetError(f'the spec replicas field "{path}" does not exist')
    return ScaleTarget(resource, obj, scale, scale.replicas)


def _find_resource(reference: CrossVersionObjectReference, served: Kinds) -> Resource:
    version = reference.api_version or ""
    if version.count("/") > 1:
        raise TargetError(f"unexpected GroupVersion string: {version}", of_spec=True)
    group = version.rpartition("/")[0]
    kinds = [r for r in served.resources() if (r.group, r.kind) == (group, reference.kind)]
    if not kinds:
        raise TargetError(f'no matches for kind "{reference.kind}" in group "{group}"')
    if kinds[0].scale is None:
        raise TargetError("the server could not find the requested resource")
    return kinds[0]


def pods_of(hpa: HorizontalPodAutoscaler, target: ScaleTarget, view: View) -> Sequence[Pod]:
    """Returns the pods that the target's selector selects.

    Raises SelectorError, also if other autoscalers scale some of these pods.
    """
    text = target.scale.selector
    if not text:
        missing = "the HPA target's scale is missing a selector"
        raise SelectorError("InvalidSelector", missing, "SelectorRequired", "selector is required")
    try:
        selector = Selector.parse(text)
    except errors.BadRequest as error:
        why = "couldn't convert selector into a corresponding internal selector object"
        raise SelectorError("InvalidSelector", f"{why}: {error.message}") from None
    pods = view.lister(Pod).list(hpa.namespace, selector)
    rivals = _rivals(hpa, pods, view)
    if rivals:
        names = " ".join(other.key for other in rivals)
        raise SelectorError(
            "AmbiguousSelector",
            f"pods by selector {text} are controlled by multiple HPAs: [{names}]",
        )
    return pods


def _rivals(
    hpa: HorizontalPodAutoscaler, pods: Sequence[Pod], view: View
) -> list[HorizontalPodAutoscaler]:
    """Returns all autoscalers that scale some of these pods, or none if `hpa` is the only one."""
    rivals = [hpa]
    for other in view.lister(HorizontalPodAutoscaler).list(hpa.namespace):
        if other.name != hpa.name and _chooses_any(other, pods, view):
            rivals.append(other)
    return sorted(rivals, key=lambda rival: rival.name) if len(rivals) > 1 else []


def _chooses_any(hpa: HorizontalPodAutoscaler, pods: Sequence[Pod], view: View) -> bool:
    try:
        text = target_of(hpa, view).scale.selector
        selector = Selector.parse(text) if text else Selector.nothing()
    except (TargetError, errors.BadRequest):
        return False
    return any(selector.matches(pod.metadata.labels) for pod in pods)
