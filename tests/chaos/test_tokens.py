"""Workers are killed while Secrets get their tokens: each has one that is valid, and keeps it."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Secret, ServiceAccount
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.helpers.serviceaccount.claims import LEGACY_ISSUER
from kcm.helpers.serviceaccount.tokens import Verifier, ensure_key_file, read_signing_key
from kcm.store.admission import namespaces
from kcm.testing.waiting import until
from tests.chaos import faults
from tests.chaos.cluster import Cluster

SECRETS, ACCOUNTS = Secret.resource, ServiceAccount.resource
TYPE = "kubernetes.io/service-account-token"
NAMES = tuple(f"account-{number}" for number in range(8))


class Tokens:
    """Accounts and their Secrets, and what tokens each Secret ever had."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        key = cluster.folder / "sa.key"
        ensure_key_file(key)
        cluster.environment["KCM_SERVICE_ACCOUNT_PRIVATE_KEY_FILE"] = str(key)
        verification = read_signing_key(key, "sa.key").verification
        self._verifier = Verifier([verification])
        self._position = cluster.store.resource_version()
        self.tokens: dict[str, set[str]] = {}  # by the Secret's uid

    def stir(self, rng: random.Random, steps: int) -> None:
        """Creates and deletes accounts and Secrets."""
        store = self.cluster.store
        for _ in range(steps):
            name = rng.choice(NAMES)
            try:
                match rng.randrange(5):
                    case 0:
                        store.delete(ACCOUNTS, f"default/{name}")
                    case 1:
                        store.delete(SECRETS, f"default/{name}")
                    case _:
                        self.ask_for(name)
                self.read()
            except (errors.NotFound, errors.Temporary):
                continue

    def ask_for(self, name: str) -> None:
        """Creates the account and the Secret that are missing."""
        notes = {"kubernetes.io/service-account.name": name}
        meta = ObjectMeta(name=name, namespace="default")
        account = ServiceAccount(metadata=meta)
        secret = Secret(metadata=meta.replace(annotations=notes), type=TYPE)
        for obj in (account, secret):
            try:
                self.cluster.store.create(obj)
            except errors.AlreadyExists:
                continue

    def read(self) -> None:
        """Notes the tokens that Secrets got since the last call."""
        changes = self.cluster.store.read_changes({SECRETS: self._position}, 0)
        if changes.gone:  # the server was restarted
            self._position = self.cluster.store.resource_version()
            written = list(self.cluster.store.list(SECRETS).items)
        else:
            self._position = changes.positions[SECRETS]
            written = [codec.decode(entry.raw, SECRETS) for entry in changes.entries]
        for secret in written:
            assert isinstance(secret, Secret)
            if secret.data and "token" in secret.data:
                self.tokens.setdefault(secret.uid, set()).add(secret.data["token"])

    def faults(self) -> list[str]:
        """Returns what is wrong; nothing when every Secret has the token of its account."""
        self.cluster.start()
        self.read()
        store = self.cluster.store
        accounts = {obj.name: obj for obj in store.list(ACCOUNTS).items}
        wrong: list[str] = []
        for secret in store.list(SECRETS).items:
            assert isinstance(secret, Secret)
            if secret.type != TYPE:
                continue
            account = accounts.get(secret.annotations["kubernetes.io/service-account.name"])
            if account is None:
                wrong.append(f"{secret.name} is of no account")
                continue
            token = base64.b64decode((secret.data or {}).get("token", "")).decode()
            claims = self._verifier.verify(token, [LEGACY_ISSUER]) if token else None
            if claims is None or account.uid not in str(claims):
                wrong.append(f"{secret.name} has no valid token")
        return wrong


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    cluster = Cluster(workers=1, beats=1)
    try:
        tokens = Tokens(cluster)
        cluster.start()
        namespaces.ensure(cluster.store)
        yield tokens
    finally:
        cluster.stop()


def finish(tokens: Tokens) -> None:
    for name in NAMES:
        tokens.ask_for(name)
    wrong = tokens.faults
    until(lambda: not wrong(), "a valid token in each Secret", words=lambda: str(wrong()))

    def saw_all() -> bool:
        tokens.read()  # some of the changes that are left
        return len(tokens.tokens) >= len(NAMES)

    until(saw_all, "the watch of a token of each Secret")
    assert [uid for uid, had in tokens.tokens.items() if len(had) > 1] == []


def test_kills_leave_each_secret_with_one_valid_token(tokens: Tokens) -> None:
    rng = random.Random(7)
    tokens.stir(rng, steps=30)
    for kill in (faults.kill_a_pool_child, faults.kill_a_manager):
        kill(tokens.cluster, rng)
        tokens.stir(rng, steps=15)
    finish(tokens)


@pytest.mark.chaos
def test_kills_again_and_again_leave_each_secret_with_one_valid_token(tokens: Tokens) -> None:
    rng = random.Random(8)
    kills = (
        faults.kill_a_pool_child,
        faults.kill_a_worker,
        faults.kill_a_manager,
        faults.kill_the_server,
        faults.cut_every_connection,
    )
    for number in range(30):
        tokens.stir(rng, steps=20)
        kills[number % len(kills)](tokens.cluster, rng)
        tokens.cluster.start()
        tokens.stir(rng, steps=20)
    finish(tokens)
