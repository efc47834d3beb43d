"""Where upstream's cases of autoscalers call kcm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kcm import errors
from kcm.api.autoscaling_v2 import HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior
from kcm.api.core_v1 import Pod
from kcm.apimachinery.durations import parse_duration
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import Quantity
from kcm.controllers.horizontalpodautoscaling import HorizontalPodAutoscalerController
from kcm.controllers.horizontalpodautoscaling.behavior import Bounds, Normalizer
from kcm.controllers.horizontalpodautoscaling.calculator import (
    Calculator,
    CalculatorRules,
    MetricError,
    PodMetric,
    Tolerances,
    group_pods,
    request_of,
)
from kcm.controllers.horizontalpodautoscaling.history import History, ReplicaMark
from kcm.controllers.horizontalpodautoscaling.options import HorizontalPodAutoscalerOptions
from kcm.kinds import defaults
from kcm.reconcile.plan import Failure, Outcome, Patch, Plan
from kcm.store.resource_metrics.answers import Value
from kcm.store.resource_metrics.usage import Measured, total
from kcm.testing.views import FakeView
from tests.upstream.adapter import Json, NotExpressible, decode
from tests.upstream.cases import Case

_INITIALIZATION, _DELAY = timedelta(minutes=2), timedelta(seconds=10)  # of upstream's tests
_WINDOW = timedelta(minutes=5)
_MOMENT = datetime.fromisoformat("2026-01-01T00:00:00Z")


# --- Numbers of replicas.


def calculate(case: Case) -> Json:
    """Returns the replicas that a metric asks for, and the usage."""
    pods = [_pod(pod) for pod in case["pods"]]
    rules = _rules(case["now"], Tolerances(case["down"], case["up"]))
    calculator = Calculator(case["current"], pods, rules)
    target, levels = case["target"], case.get("levels", ())
    try:
        if case["kind"] == "utilization":
            metrics = _pod_metrics(case["metrics"])
            got = calculator.by_utilization(target, case["resource"], case["container"], metrics)
            return {"replicas": got.replicas, "percent": got.percent, "usage": got.average}
        if case["kind"] == "value":
            usage = sum(levels)
            return {"replicas": calculator.by_value(target, usage), "usage": usage}
        if case["kind"] == "share":
            replicas, usage = calculator.by_share(case["current"], target, sum(levels))
        else:
            replicas, usage = calculator.by_average(target, "", _pod_metrics(case["metrics"]))
    except MetricError as error:
        return {"error": str(error)}
    return {"replicas": replicas, "usage": usage}


def group(case: Case) -> Json:
    """Returns how many pods are ready, and which are in other groups."""
    pods = [_pod(pod) for pod in case["pods"]]
    rules = _rules(case["now"], Tolerances(0, 0))
    groups = group_pods(pods, _pod_metrics(case["metrics"]), case["resource"], rules)
    others = {name: sorted(getattr(groups, name)) for name in ("unready", "missing", "ignored")}
    return {"ready": groups.ready, **others}


def sum_requests(case: Case) -> Json:
    """Returns the request of each pod, or the error."""
    pods = [_pod(pod) for pod in case["pods"]]
    try:
        return {pod.name: request_of(pod, case["resource"], case["container"]) for pod in pods}
    except MetricError as error:
        return {"error": str(error)}


def limit(case: Case) -> tuple[int, str]:
    """Returns the replicas that windows, rates and bounds leave, and the reason."""
    rules = case.get("behavior")
    given = HorizontalPodAutoscalerBehavior.model_validate(rules) if rules else None
    bounds = Bounds(case["current"], case["min"], case["max"])
    decision = Normalizer(given, _WINDOW, _MOMENT).decide(
        case["desired"], bounds, _history(case, "", _MOMENT)
    )
    return decision.replicas, decision.limit[0]


# --- Syncs.


@dataclass(frozen=True)
class AutoscalerResult:
    """What a sync of an autoscaler leaves: status, the target's new scale if it has one, and
    Events.
    """

    status: Json
    scale: int | None
    events: list[str]  # type, reason, message


def sync(case: Case) -> AutoscalerResult:
    """Returns the result of one sync. Raises NotExpressible."""
    now = datetime.fromisoformat(case["now"])
    hpas = [_autoscaler(hpa) for hpa in case["hpas"]]
    scaled = zip(hpas, case["scales"], strict=True)
    targets = [_target(hpa, scale) for hpa, scale in scaled if isinstance(scale, dict)]
    if selector := case.get("rival"):
        hpas.append(_rival(hpas[0]))
        targets.append(_target(hpas[1], {**case["scales"][0], "status": {"selector": selector}}))
    pods = [_pod(pod) for pod in case.get("pods", ())]
    options = HorizontalPodAutoscalerOptions(
        horizontal_pod_autoscaler_cpu_initialization_period=_INITIALIZATION,
        horizontal_pod_autoscaler_initial_readiness_delay=_DELAY,
    )
    controller = HorizontalPodAutoscalerController(options)
    hpa = hpas[0]
    view = FakeView(
        *hpas,
        *{target.key: target for target in targets}.values(),
        *pods,
        controller=controller,
        metrics=_Answers(case, hpa, now),
        memory=_history(case, hpa.uid, now).state(),
        now=now,
    )
    return _result(controller.reconcile(hpa.key, view), hpa, case)


def _result(plan: Plan, hpa: HorizontalPodAutoscaler, case: Case) -> AutoscalerResult:
    patches = [write for write in plan.writes if isinstance(write, Patch)]
    outcome = Outcome([(patch, patch.change(patch.old)) for patch in patches])
    if "FailedUpdateScale" in str(case["want"]["status"]):
        failure = Failure(patches[0], errors.StoreUnavailable("something went wrong"))
        outcome = Outcome(failures=[failure])
    update: Any = plan.status_after(outcome)
    status = update.new.status if update else hpa.status
    events = [*plan.events, *plan.events_after(outcome)]
    scale: Any = outcome.done[0][1] if outcome.done else None
    return AutoscalerResult(
        json_of(status),
        scale.spec.replicas if scale else None,
        [f"{event.type} {event.reason} {event.message}" for event in events],
    )


def json_of(model: Any) -> Json:
    """Returns a part of an object as JSON."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


@dataclass(frozen=True)
class _Answers:
    """Metrics as upstream's clients had them; no answer is an error."""

    case: Case
    hpa: HorizontalPodAutoscaler
    now: datetime

    def pods(self, pods: Iterable[Pod]) -> Mapping[str, Measured]:
        if error := self.case.get("resource_error"):
            words = "unable to fetch metrics from resource metrics API"
            raise errors.StoreUnavailable(f"{words}: {error}")
        measured = {}
        for item in self.case.get("resources", ()):
            containers = {
                one["name"]: {name: Quantity(text) for name, text in one["usage"].items()}
                for one in item["containers"]
            }
            moment = datetime.fromisoformat(item["timestamp"])
            window = parse_duration(item["window"]).total_seconds()
            key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            measured[key] = Measured(moment, window, total(containers.values()), containers)
        return measured

    def of_pods(self, metric: str, pods: Sequence[Pod], selector: Selector) -> Mapping[str, Value]:
        values = self._answer("Pods").get("pods", {})
        return {
            f"{self.hpa.namespace}/{name}": self._value(value["V"])
            for name, value in values.items()
        }

    def of_objects(
        self, resource: str, metric: str, keys: Iterable[str], selector: Selector
    ) -> Mapping[str, Value]:
        value = self._answer("Object")["value"]
        return {key: self._value(value) for key in keys}

    def external(
        self, namespace: str, metric: str, selector: Selector
    ) -> Sequence[tuple[Mapping[str, str], Value]]:
        return [({}, self._value(value)) for value in self._answer("External")["values"]]

    def _answer(self, type_: str) -> Json:
        """Returns the answer about the only metric of a type. Raises StoreUnavailable."""
        specs = self.hpa.spec.metrics or ()
        found = [
            answer
            for answer, spec in zip(self.case["answers"], specs, strict=True)
            if spec.type == type_
        ]
        if error := found[0].get("error"):
            raise errors.StoreUnavailable(error)
        return found[0]

    def _value(self, milli: int) -> Value:
        return Value(Quantity.of_milli(milli), self.now)


def _autoscaler(hpa: Json) -> HorizontalPodAutoscaler:
    obj = defaults.apply(decode(hpa, "autoscaling/v2", "HorizontalPodAutoscaler"))
    assert isinstance(obj, HorizontalPodAutoscaler)
    return obj.with_metadata(uid=f"uid-of-{obj.name}")


def _rival(hpa: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
    """Returns an autoscaler of another target."""
    reference = hpa.spec.scale_target_ref.replace(name="another")
    changed = hpa.with_spec(hpa.spec.replace(scale_target_ref=reference))
    return changed.with_metadata(name=f"{hpa.name}-2", uid="another")


def _target(hpa: HorizontalPodAutoscaler, scale: Json) -> KubeObject:
    """Returns the object with a scale. Raises NotExpressible if no built-in kind can have it."""
    reference = hpa.spec.scale_target_ref
    selector = scale["status"].get("selector", "")
    if selector.count("=") != 1:
        raise NotExpressible(f"built-in kinds have no scale with the selector {selector!r}")
    name, _, value = selector.partition("=")
    labels = {name: value}
    is_old = reference.kind == "ReplicationController"
    spec = {
        "replicas": scale["spec"].get("replicas", 0),
        "selector": labels if is_old else {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": []}},
    }
    body = {
        "metadata": {"name": reference.name, "namespace": hpa.namespace, "uid": "target"},
        "spec": spec,
        "status": {"replicas": scale["status"].get("replicas", 0)},
    }
    return decode(body, reference.api_version or "", reference.kind)


# --- Parts.


def _pod(pod: Json) -> Pod:
    obj = decode(pod, "v1", "Pod")
    assert isinstance(obj, Pod)
    return obj


def _rules(now: str, tolerances: Tolerances) -> CalculatorRules:
    return CalculatorRules(tolerances, _INITIALIZATION, _DELAY, datetime.fromisoformat(now))


def _pod_metrics(metrics: Json) -> dict[str, PodMetric]:
    return {
        name: PodMetric(
            metric["milli"],
            datetime.fromisoformat(metric["at"]),
            timedelta(seconds=metric["window"]),
        )
        for name, metric in metrics.items()
    }


def _history(case: Case, uid: str, now: datetime) -> History:
    def marks(name: str) -> tuple[ReplicaMark, ...]:
        moment = now.timestamp()
        return tuple(ReplicaMark(count, moment - age) for count, age in case.get(name, ()))

    recommendations = marks("recommendations")
    if "recommendations" in case and not recommendations:
        recommendations = (ReplicaMark(0, now.timestamp() - 1),)  # one that changes nothing
    return History(uid, recommendations, marks("up"), marks("down"))
