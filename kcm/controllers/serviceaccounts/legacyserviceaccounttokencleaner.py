"""Legacy service account token cleaner: ends generated tokens that nobody has used for long.

A Secret that its account refers to, that no pod uses and whose token was not used for the period is
first labelled as invalid, which the API server respects. After another period it is deleted. The
API server writes when tokens were used, and since when it does so.

Source: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go and
pkg/api/v1/pod/util.go (VisitPodSecretNames), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

from pydantic import Field

from kcm.api.core_v1 import ConfigMap, Pod, Secret, ServiceAccount
from kcm.apimachinery.durations import GoDuration
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.helpers.pod_references import secret_names
from kcm.sdk import (
    Controller,
    Delete,
    DeleteOptions,
    Options,
    PassPlan,
    PassView,
    Patch,
    Tick,
    Write,
)

# Seconds between passes. Upstream's first pass is at the start and the next a day later. A loop of
# kcm first runs after one period, and a process may not last a day. Only dates count, so more
# passes change nothing.
CHECK_PERIOD = 60 * 60.0
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
TRACKING = "kube-system/kube-apiserver-legacy-service-account-token-tracking"
_TYPE = "kubernetes.io/service-account-token"
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


class LegacyServiceAccountTokenCleanerOptions(Options):
    """The options of the legacy service account token cleaner."""

    legacy_service_account_token_clean_up_period: GoDuration = Field(
        default=timedelta(days=365),
        gt=timedelta(0),
        description="The period of time since the last usage of an legacy service account token "
        "before it can be deleted.",
    )


class LegacyServiceAccountTokenCleaner(Controller):
    """Looks at all Secrets once an hour."""

    name = "legacy-serviceaccount-token-cleaner-controller"
    short_name = "legacyserviceaccounttokencleaner"
    options_type = LegacyServiceAccountTokenCleanerOptions
    options: LegacyServiceAccountTokenCleanerOptions
    reads = (Pod, ServiceAccount)

    def ticks(self) -> tuple[Tick, ...]:
        lists = ((Secret, ""), (ConfigMap, "kube-system"))
        return (Tick("legacytokens", CHECK_PERIOD, self.clean, lists=lists),)

    def clean(self, view: PassView, state: Mapping[str, str]) -> PassPlan:
        """Returns the plan of one pass. It needs no memory of the last one."""
        since = _tracked_since(view.lister(ConfigMap).find(TRACKING))
        period = self.options.legacy_service_account_token_clean_up_period
        secrets = [s for s in view.lister(Secret).list() if s.type == _TYPE]
        plan = PassPlan(waits=tuple(secret.key for secret in secrets))
        if since is None or view.now < since + period:
            return plan
        oldest = view.now - period
        used: dict[str, set[str]] = {}
        writes: list[Write] = []
        for secret in secrets:
            if not _is_forgotten(secret, oldest):
                continue
            namespace = secret.namespace or ""
            if not _is_generated(secret, view):
                continue
            if namespace not in used:
                pods = view.lister(Pod).list(namespace)
                used[namespace] = {name for pod in pods for name in secret_names(pod)}
            if secret.name not in used[namespace]:
                writes += _end(secret, view.now, oldest)
        for write in writes:  # each by itself: one that fails keeps no other from being written
            plan.then(write, optional=True)
        return plan


def _tracked_since(tracking: ConfigMap | None) -> datetime | None:
    """Returns the beginning of the day after uses were first tracked, or None."""
    first = _parse((tracking.data or {}).get("since", "")) if tracking is not None else None
    if first is None:
        return None
    return datetime(first.year, first.month, first.day, tzinfo=UTC) + timedelta(days=1)


def _is_forgotten(secret: Secret, oldest: datetime) -> bool:
    """Reports whether a Secret is older than the period and was not used in it."""
    created, used = secret.metadata.creation_timestamp, secret.labels.get(LAST_USED)
    if secret.deleting or (created is not None and created >= oldest):
        return False
    if used is None:
        return True
    return _parse(used) is not None and used < f"{oldest.date()}"


def _is_generated(secret: Secret, view: PassView) -> bool:
    """Reports whether the Secret's account refers to it, as to those that Kubernetes made."""
    name, uid = secret.annotations.get(_NAME, ""), secret.annotations.get(_UID, "")
    account = view.lister(ServiceAccount).find(f"{secret.namespace}/{name}")
    if account is None or uid not in ("", account.uid):
        return False
    return any(reference.name == secret.name for reference in account.secrets or ())


def _end(secret: Secret, now: datetime, oldest: datetime) -> Iterator[Write]:
    """Yields the write that labels the Secret, or that deletes it once the label is old enough."""
    invalid_since = secret.labels.get(INVALID_SINCE, "")
    if _parse(invalid_since) is None:
        today = f"{now.date()}"

        def change(old: KubeObject) -> KubeObject:
            if old.uid != secret.uid:
                return old
            return old.with_metadata(labels={**old.labels, INVALID_SINCE: today})

        yield Patch(secret, change)
    elif invalid_since < f"{oldest.date()}":
        version = secret.metadata.resource_version or ""
        yield Delete(secret, DeleteOptions(resource_version=version))


def _parse(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if f"{day}" == text else None
