"""Tracks when the tokens of Secrets were last used, for the controller that cleans them up.

The date is a label of the Secret, written at most once a day. A ConfigMap in kube-system says since
when uses are tracked. Both are written by a thread, as requests must not wait for them.

Source: patchSecretWithLastUsedDate in pkg/serviceaccount/legacy.go, and
pkg/controlplane/controller/legacytokentracking/controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from datetime import date, timedelta

import structlog

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Secret
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.clock import Clock
from kcm.loops import Loop, Turn
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

LAST_USED = "kubernetes.io/legacy-token-last-used"
NAMESPACE, NAME = "kube-system", "kube-apiserver-legacy-service-account-token-tracking"
SINCE = "since"
EVERY = 1.0  # seconds between two looks
_ENSURE_EVERY = 30.0  # seconds between two looks at the ConfigMap
_MOST = 1000  # Secrets that wait for their label


def ensure_tracking(store: Store, today: date) -> None:
    """Creates the ConfigMap with the date of today, or sets the date if there is none.

    Raises StoreUnavailable.
    """
    resource, key = ConfigMap.resource, f"{NAMESPACE}/{NAME}"
    tracking = store.find(resource, key)
    try:
        if tracking is None:
            metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
            store.create(ConfigMap(metadata=metadata, data={SINCE: f"{today}"}))
        elif not _is_date((tracking.data or {}).get(SINCE, "")):
            store.modify(resource, key, lambda old: _with_since(old, f"{today}"))
    except errors.ApiError as error:  # another server was faster
        log.info("The date of token tracking was not written", error=error.message)


class TokenTracker(Loop):
    """Writes the labels and the ConfigMap. `note_use` may be called from any thread."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        super().__init__("kcm-token-tracking")
        self._store = store
        self._clock = clock or store.clock
        self._lock = threading.Lock()
        self._used: dict[str, str] = {}  # uid by key
        self._looked_at = -_ENSURE_EVERY

    @property
    def busy(self) -> bool:
        """Whether uses of tokens wait to be written."""
        return self.in_turn or bool(self._used)

    def note_use(self, secret: Secret) -> None:
        """Notes that the token of a Secret was used now."""
        today = self._today()
        if secret.labels.get(LAST_USED) in (f"{today}", f"{today + timedelta(days=1)}"):
            return
        with self._lock:
            if len(self._used) < _MOST:
                self._used[secret.key] = secret.uid

    def turn(self, patience: float) -> Turn:
        """Writes the labels of the Secrets that were used, and the ConfigMap if it is missing.

        Raises StoreUnavailable.
        """
        now = self._clock.monotonic()
        if now - self._looked_at >= _ENSURE_EVERY:
            ensure_tracking(self._store, self._today())
            self._looked_at = now
        with self._lock:
            used, self._used = self._used, {}
        for key, uid in used.items():
            self._label(key, uid)
        return Turn(upkeep_in=EVERY)

    def _label(self, key: str, uid: str) -> None:
        today = f"{self._today()}"

        def change(old: Secret) -> Secret:
            if old.uid != uid:
                return old
            return old.with_metadata(labels={**old.labels, LAST_USED: today})

        try:
            self._store.modify(Secret.resource, key, change)
        except errors.NotFound:  # it was deleted meanwhile
            return
        except errors.ApiError as error:
            log.info("The use of a token cannot be recorded", secret=key, error=error.message)

    def _today(self) -> date:
        return self._clock.now().date()


def _with_since(old: ConfigMap, today: str) -> ConfigMap:
    return old.replace(data={SINCE: today})


def _is_date(text: str) -> bool:
    try:
        return f"{date.fromisoformat(text)}" == text
    except ValueError:
        return False
