"""Asks one conversion webhook once, about a batch of objects.

Source: webhookConverter.Convert in
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, Kubernetes
1.33.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kcm import errors
from kcm.api import codec
from kcm.api.admissionregistration_v1 import WebhookClientConfig
from kcm.api.custom.kinds import CustomObject
from kcm.api.scheme import Resource
from kcm.apiextensions.conversion import KindVersions, webhook_versions
from kcm.apiserver.egress.conversion import metrics, review
from kcm.apiserver.egress.conversion.converted import InvalidMetadata, InvalidObject, read_converted
from kcm.apiserver.egress.conversion.metrics import ConversionMetrics
from kcm.apiserver.egress.conversion.review import InvalidReview
from kcm.apiserver.egress.credentials import BackendCredentials
from kcm.apiserver.egress.posting import BackendClient
from kcm.http.faults import CallFailed

TIMEOUT = 30.0  # seconds, as upstream
MOST_OBJECTS = 500  # of one review, as many as kubectl lists at once
MOST_BYTES = 1024 * 1024  # of one review, unless a single object is larger
_NO_CREDENTIALS = BackendCredentials()


class ConversionCall:
    """A review of some objects: first `send`, then `finish`."""

    def __init__(
        self,
        batch: Sequence[tuple[CustomObject, bytes]],
        target: Resource,
        counts: ConversionMetrics,
    ) -> None:
        """`batch` has each object with its JSON; none of them is in the version of `target`.

        Raises ConversionFailed.
        """
        versions = webhook_versions(target)
        assert versions is not None
        self._objects = [obj for obj, _ in batch]
        self._target = target
        self._versions: KindVersions = versions
        self._counts = counts
        self._uid = str(uuid.uuid4())
        first = self._objects[0]
        self._source = first.api_version.rpartition("/")[2]
        self._shown = review.show_kind(first.api_version, first.kind)
        self._began = time.perf_counter()
        try:
            self._version = review.choose_version(versions.webhook.conversion_review_versions or ())
        except InvalidReview as error:
            raise errors.ConversionFailed(error.message) from None
        texts = [text for _, text in batch]
        self.body = review.make_review(self._version, self._uid, target.api_version, texts)

    async def send(self, client: BackendClient) -> bytes:
        """Returns the body of the webhook's response. Raises ConversionFailed."""
        config = self._versions.webhook.client_config or WebhookClientConfig()
        backend = replace(_NO_CREDENTIALS.build_backend(config), names=(self._target.name,))
        try:
            return await client.post_soon(backend, self.body, TIMEOUT)
        except CallFailed as error:
            raise self._fail(metrics.CALL, f"failed: {error.message}") from None

    def finish(self, body: bytes) -> list[CustomObject]:
        """Returns the converted objects, in the order of the batch. Raises ConversionFailed."""
        try:
            converted = review.read_answer(self._version, self._uid, body)
        except InvalidReview as error:
            raise self._fail(metrics.MALFORMED, f"failed: {error.message}") from None
        if len(converted) != len(self._objects):
            count = f"returned {len(converted)} objects, expected {len(self._objects)}"
            raise self._fail(metrics.PARTIAL, count)
        results = [
            self._read(index, obj, answer)
            for index, (obj, answer) in enumerate(zip(self._objects, converted, strict=True))
        ]
        self._observe("")
        return results

    def _read(self, index: int, obj: CustomObject, answer: object) -> CustomObject:
        alone = len(self._objects) == 1
        try:
            return read_converted(obj, answer, self._target)
        except InvalidObject as error:
            what = "object" if alone else f"converted object at index {index}"
            raise self._fail(metrics.INVALID, f"returned invalid {what}: {error.message}") from None
        except InvalidMetadata as error:
            what = "metadata" if alone else f"metadata in object at index {index}"
            raise self._fail(metrics.INVALID, f"returned invalid {what}: {error.message}") from None

    def _fail(self, kind: str, why: str) -> errors.ConversionFailed:
        self._observe(kind)
        return errors.ConversionFailed(f"conversion webhook for {self._shown} {why}")

    def _observe(self, failure: str) -> None:
        seconds = time.perf_counter() - self._began
        self._counts.observe(
            self._versions.name, self._source, self._target.version, seconds, failure
        )


def split(objects: Sequence[CustomObject]) -> Iterator[list[tuple[CustomObject, bytes]]]:
    """Yields the objects with their JSON in batches, each for one review."""
    batch: list[tuple[CustomObject, bytes]] = []
    size = 0
    for obj in objects:
        text = codec.encode(obj)
        if batch and (len(batch) == MOST_OBJECTS or size + len(text) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((obj, text))
        size += len(text)
    if batch:
        yield batch
