"""Measures Deployments, Jobs and cascades, as ratios to ReplicaSets of the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.harness import Bench, progress, wait_for
from bench.objects import deployment, job, replica_set, web_pod
from bench.programs.instant_kubelet import InstantKubelet
from bench.store import PODS, create_in_batches, watch_entries, watch_until
from bench.system import REPLICA_SETS, remove, scale_up, start_system
from bench.table import Row, Sample
from kcm import errors
from kcm.api import codec
from kcm.api.apps_v1 import Deployment, ReplicaSet
from kcm.api.batch_v1 import Job
from kcm.api.core_v1 import ConfigMap, Namespace
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store import DeleteOptions

POOL = "prefork"
DEPLOYMENTS, NAMESPACES = Deployment.resource, Namespace.resource
BACKGROUND = DeleteOptions(propagation_policy="Background")


def rows(bench: Bench) -> Iterator[Row]:
    progress("workloads: starting worker, manager and beat")
    start_system(bench, POOL)
    yield _rolled(bench)
    yield _job(bench)
    yield _cascade(bench)
    yield _many_sets(bench)
    yield _namespace(bench)


def _watch(bench: Bench, obj: KubeObject, holds: Callable[[Any], bool], what: str) -> None:
    watch_until(bench.store, obj.resource, obj.key, holds, what)


def _sets(bench: Bench, count: int) -> Sample:
    """Returns the milliseconds in which a ReplicaSet gets `count` pods, several times."""
    found = []
    for number in range(bench.sizes.queue_rounds):
        found.append(scale_up(bench, f"base-{number}", count) * 1e3)
        remove(bench, f"base-{number}")
    return Sample.of(found)


def _rolled(bench: Bench) -> Row:
    count = bench.sizes.rolled_pods
    progress(f"workloads: a Deployment of {count} rolled, {bench.sizes.queue_rounds} rounds")
    ours = []
    with InstantKubelet(bench):
        baseline = _sets(bench, count)
        stored = bench.store.create(deployment("web", count))
        _watch(bench, stored, _is_rolled, "the first roll-out")
        for number in range(bench.sizes.queue_rounds):
            time.sleep(bench.sizes.settle_seconds / 6)
            found = bench.store.get(DEPLOYMENTS, stored.key)
            assert isinstance(found, Deployment)
            started = time.monotonic()
            changed = bench.store.update(_with_image(found, f"nginx:1.{number}"))
            _watch(bench, changed, _is_rolled, "a roll-out")
            ours.append((time.monotonic() - started) * 1e3)
        _cascade_of(bench, stored)
    return Row(
        name="workloads.rolled",
        what=f"a Deployment of {count} gets another image, until all pods are of it and available",
        unit="ms",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what=f"ms, ReplicaSet 0 to {count}",
        bound=4 * baseline.median,
        target="4 x ReplicaSet",
    )


def _with_image(found: Deployment, image: str) -> Deployment:
    template = found.spec.template
    container = (template.spec.containers or [])[0].replace(image=image)
    changed = template.replace(spec=template.spec.replace(containers=[container]))
    return found.with_spec(found.spec.replace(template=changed))


def _is_rolled(found: Deployment) -> bool:
    status, wanted = found.status, found.spec.replicas
    seen = (status.observed_generation or 0) >= (found.metadata.generation or 0)
    counts = {status.replicas, status.updated_replicas, status.available_replicas}
    return seen and counts == {wanted}


def _job(bench: Bench) -> Row:
    completions, parallelism = bench.sizes.job_pods
    progress(f"workloads: a Job of {completions} by {parallelism}")
    ours = []
    with InstantKubelet(bench):
        baseline = _sets(bench, completions)
        for number in range(bench.sizes.queue_rounds):
            started = time.monotonic()
            stored = bench.store.create(job(f"sum-{number}", completions, parallelism))
            _watch(bench, stored, _is_complete, "the job")
            ours.append((time.monotonic() - started) * 1e3)
            _cascade_of(bench, stored)
    return Row(
        name="workloads.job",
        what=f"a Job of {completions} by {parallelism}, pods succeeding at once",
        unit="ms",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what=f"ms, ReplicaSet 0 to {completions}",
        bound=8 * baseline.median,
        target="8 x ReplicaSet",
    )


def _is_complete(found: Job) -> bool:
    return any(c.type == "Complete" and c.status == "True" for c in found.status.conditions or ())


def _cascade_of(bench: Bench, owner: KubeObject) -> float:
    """Deletes an owner and its dependents; returns the seconds until the last pod is gone."""
    started = time.monotonic()
    bench.store.delete(owner.resource, owner.key, BACKGROUND)
    wait_for(lambda: bench.store.count(PODS) == 0, "the collection of the pods", 120, every=0.002)
    return time.monotonic() - started


def _cascade(bench: Bench) -> Row:
    count = bench.sizes.replicas[0]
    progress(f"workloads: cascading deletion of {count} pods")
    ours, raw = [], []
    for number in range(bench.sizes.queue_rounds):
        raw.append(scale_up(bench, f"web-{number}", count) * 1e3)
        time.sleep(bench.sizes.settle_seconds / 3)
        owner = bench.store.get(REPLICA_SETS, f"default/web-{number}")
        ours.append(_cascade_of(bench, owner) * 1e3)
        time.sleep(bench.sizes.settle_seconds / 3)
    baseline = Sample.of(raw)
    return Row(
        name="workloads.cascade",
        what=f"a ReplicaSet of {count:,} deleted, until its last pod is gone",
        unit="ms",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="ms, until it had them",
        bound=2 * baseline.median,
        target="2 x creating them",
    )


def _many_sets(bench: Bench) -> Row:
    count = bench.sizes.many_sets
    progress(f"workloads: {count} ReplicaSets of one pod")
    baseline = _sets(bench, count)
    ours = []
    for number in range(bench.sizes.queue_rounds):
        items = [bench.store.build_create(replica_set(f"r{number}-{n}", 1)) for n in range(count)]
        position = bench.store.resource_version()
        started = time.monotonic()
        made = {result.get_stored().key for result in bench.store.write(items)}
        _wait_settled(bench, set(made), position)
        ours.append(count / (time.monotonic() - started))
        for key in made:
            bench.store.delete(REPLICA_SETS, key, BACKGROUND)
        wait_for(lambda: bench.store.count(PODS) == 0, "the collection of the pods", 120, every=0.1)
    return Row(
        name="workloads.sets",
        what=f"{count} ReplicaSets of one pod created at once, settled",
        unit="/s",
        measured=Sample.of(ours),
        baseline=Sample.of([count / value * 1e3 for value in baseline.values]),
        baseline_what=f"pods/s, one ReplicaSet 0 to {count}",
        bound=300,
        target="300 a second",
        higher_is_better=True,
    )


def _wait_settled(bench: Bench, waiting: set[str], position: int) -> None:
    """Waits until the status of each of these ReplicaSets counts its pod."""
    what = f"the pods of {len(waiting)} ReplicaSets"
    for entry in watch_entries(bench.store, REPLICA_SETS, position, what):
        found = codec.decode(entry.raw, REPLICA_SETS)
        if isinstance(found, ReplicaSet) and found.status.replicas == 1:
            waiting.discard(entry.key)
            if not waiting:
                return


def _namespace(bench: Bench) -> Row:
    count = bench.sizes.namespace_objects
    progress(f"workloads: a namespace of {count} objects")
    ours, raw = [], []
    for number in range(bench.sizes.queue_rounds):
        name = f"crowd-{number}"
        bench.store.create(Namespace(metadata=ObjectMeta(name=name)))
        pods = web_pod("load").with_metadata(namespace=name)
        settings = ConfigMap(
            metadata=ObjectMeta(generate_name="load-", namespace=name), data={"a": "b"}
        )
        seconds = create_in_batches(bench.store, count // 2, pods)
        seconds += create_in_batches(bench.store, count - count // 2, settings)
        raw.append(seconds * 1e3)
        time.sleep(bench.sizes.settle_seconds)
        started = time.monotonic()
        bench.store.delete(NAMESPACES, name)
        wait_for(partial(_is_gone, bench, name), "the end of the namespace", 120, every=0.002)
        ours.append((time.monotonic() - started) * 1e3)
    baseline = Sample.of(raw)
    return Row(
        name="workloads.namespace",
        what=f"a namespace of {count:,} pods and ConfigMaps deleted, until it is gone",
        unit="ms",
        measured=Sample.of(ours),
        baseline=baseline,
        baseline_what="ms, creating them in batches",
        bound=3 * baseline.median,
        target="3 x creating them",
    )


def _is_gone(bench: Bench, name: str) -> bool:
    try:
        bench.store.get(NAMESPACES, name)
    except errors.NotFound:
        return True
    return False
