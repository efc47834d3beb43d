"""What the simulated cloud keeps in Redis, as JSON. A record that cannot be read is left out."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

InstanceState = Literal["running", "shutdown", "deleted"]


class Record(BaseModel):
    """The base class of all records."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Instance(Record):
    """An instance, where it differs from the node that it is for. Empty fields do not differ."""

    state: InstanceState = "running"
    type: str = ""
    zone: str = ""
    region: str = ""


class Balancer(Record):
    """A load balancer of a Service."""

    name: str
    service: str  # its key
    cluster: str
    ip: str
    ports: tuple[str, ...] = ()  # such as `80/TCP`
    source_ranges: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


class StoredRoute(Record):
    """A route to the pods of a node."""

    name: str
    cluster: str
    node: str
    cidr: str
    blackhole: bool = False


class Script(Record):
    """What certain calls do: wait, and then fail or succeed."""

    call: str = ""  # such as `EnsureLoadBalancer`, "" for every call
    object: str = ""  # the key of a Service, or the name of a node; "" for every object
    delay: float = Field(default=0.0, ge=0, le=3600)  # seconds
    error: str = ""  # "" for calls that succeed
    limited: bool = False  # whether it applies to a number of calls only

    def applies_to(self, call: str, *about: str) -> bool:
        """Reports whether it applies to this call about these objects."""
        return self.call in ("", call) and self.object in ("", *about)


class MadeCall(Record):
    """A call that was made."""

    at: datetime
    call: str
    object: str = ""
    seconds: float = 0.0
    error: str = ""


RecordT = TypeVar("RecordT", bound=Record)


def read_record(kind: type[RecordT], text: bytes) -> RecordT | None:
    """Returns the record in a JSON text, None if it is none."""
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return None
