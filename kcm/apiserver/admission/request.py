"""`AdmissionRequest`: what is known of a write before its object is, and what decides about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kcm.api.scheme import Resource
from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.remarks import Remarks
from kcm.store import WriteAdmission


@dataclass(frozen=True)
class AdmissionRequest:
    """What is known of a write before its object is."""

    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    resource: Resource
    caller: Caller
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of the verb's options
    remarks: Remarks = field(default_factory=Remarks)


class DecidesRequest(WriteAdmission, Protocol):
    """Decides about a request, as `kcm.apiserver.admission_chain.RequestAdmission` does."""

    def decide(self, sent: Mapping[str, Any]) -> Mapping[str, Any]: ...
