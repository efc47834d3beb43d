"""Validation of ResourceSlices.

Source: pkg/apis/resource/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm.api.resource_v1 import ResourceSlice
from kcm.api.resource_v1.slices import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourcePool,
    ResourceSliceSpec,
)
from kcm.apiextensions.cel.library.numbers import is_semver
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    require_unchanged,
    required,
    too_long,
    too_many,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.devices.capacities import request_policy
from kcm.kinds.validation.devices.parts import (
    binding_conditions,
    driver_name,
    each,
    effect,
    label_name,
    label_value,
    pool_name,
    qualified_name,
)
from kcm.kinds.validation.podspec.affinity import node_selector

_MOST_DEVICES, _MOST_SPECIAL_DEVICES = 128, 64
_MOST_COUNTER_SETS, _MOST_COUNTERS, _MOST_CONSUMPTIONS = 8, 32, 2
_MOST_VALUES = 32  # attributes and capacities of a device
_LONGEST_VALUE = 64
_MOST_TAINTS = 16
_PLACES = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_PLACES_OF_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)


def create(resource_slice: ResourceSlice) -> Faults:
    faults = meta.metadata(resource_slice, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _spec(resource_slice.spec, None)


def update(new: ResourceSlice, old: ResourceSlice) -> Faults:
    return meta.metadata_update(new, old) + _spec(new.spec, old.spec)


def _spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None) -> Faults:
    faults = driver_name(spec.driver, "spec.driver") + _pool(spec.pool, "spec.pool")
    if old is not None:
        faults += require_unchanged("spec.pool.name", spec.pool.name, old.pool.name)
        faults += require_unchanged("spec.driver", spec.driver, old.driver)
        faults += require_unchanged("spec.nodeName", spec.node_name, old.node_name)
    faults += _places(spec)
    if spec.shared_counters is not None and spec.devices is not None:
        detail = "only one of `sharedCounters` or `devices` is allowed"
        faults.append(invalid("spec", "", detail))
    before = {device.name: device for device in (old.devices if old else None) or ()}

    def device(one: Device, path: str) -> Faults:
        return _device(one, before.get(one.name), path, bool(spec.per_device_node_selection))

    special = any(one.taints or one.consumes_counters for one in spec.devices or ())
    most = _MOST_SPECIAL_DEVICES if special else _MOST_DEVICES
    return [
        *faults,
        *each(spec.devices, "spec.devices", device, most=most, key=lambda one: one.name),
        *each(
            spec.shared_counters, "spec.sharedCounters", _counter_set, most=_MOST_COUNTER_SETS,
            key=lambda one: one.name,
        ),
    ]  # fmt: skip


def _pool(pool: ResourcePool, path: str) -> Faults:
    faults = pool_name(pool.name, f"{path}.name")
    if pool.resource_slice_count <= 0:
        where = f"{path}.resourceSliceCount"
        faults.append(invalid(where, pool.resource_slice_count, "must be greater than zero"))
    if pool.generation < 0:
        detail = "must be greater than or equal to zero"
        faults.append(invalid(f"{path}.generation", pool.generation, detail))
    return faults


def _places(spec: ResourceSliceSpec) -> Faults:
    empty = "must be either unset or set to a non-empty string"
    faults, given = _place(spec, "spec", empty)
    selector = spec.node_selector
    if selector is not None and len(selector.node_selector_terms) != 1:
        detail = "must have exactly one node selector term"
        where = "spec.nodeSelector.nodeSelectorTerms"
        faults.append(invalid(where, selector.node_selector_terms, detail))
    if spec.per_device_node_selection:
        given.append("`perDeviceNodeSelection`")
    elif spec.per_device_node_selection is False:
        detail = "must be either unset or set to true"
        faults.append(invalid("spec.perDeviceNodeSelection", False, detail))
    if not given:
        faults.append(required("spec", _PLACES))
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        faults.append(invalid("spec", shown, f"{_PLACES}, but multiple fields are set"))
    return faults


def _place(holder: ResourceSliceSpec | Device, path: str, empty: str) -> tuple[Faults, list[str]]:
    """Returns the faults of a node's name, a selector for nodes, and `allNodes`, and the names of
    those that are set. `empty` is the message about an empty name.
    """
    faults: Faults = []
    given: list[str] = []
    if holder.node_name is not None:
        where = f"{path}.nodeName"
        if holder.node_name:
            given.append("`nodeName`")
            details = names.subdomain_faults(holder.node_name)
            faults += invalid_all(where, holder.node_name, details)
        else:
            faults.append(invalid(where, "", empty))
    if holder.node_selector is not None:
        given.append("`nodeSelector`")
        faults += node_selector(holder.node_selector, f"{path}.nodeSelector")
    if holder.all_nodes:
        given.append("`allNodes`")
    elif holder.all_nodes is False:
        detail = "must be either unset or set to true"
        faults.append(invalid(f"{path}.allNodes", False, detail))
    return faults, given


def _counter_set(counters: CounterSet, path: str) -> Faults:
    return _counters(counters.name, counters.counters, path, "name")


def _consumption(consumption: DeviceCounterConsumption, path: str) -> Faults:
    return _counters(consumption.counter_set, consumption.counters, path, "counterSet")


def _counters(
    name: str, counters: Mapping[str, Counter] | None, path: str, name_field: str
) -> Faults:
    where = f"{path}.{name_field}"
    faults = label_name(name, where) if name else [required(where)]
    where = f"{path}.counters"
    if not counters:
        return [*faults, required(where)]
    if len(counters) > _MOST_COUNTERS:
        return [*faults, too_many(where, len(counters), _MOST_COUNTERS)]
    return faults + [fault for key in counters for fault in label_name(key, where)]


def _device(device: Device, old: Device | None, path: str, per_device: bool) -> Faults:
    attributes, capacity = device.attributes or {}, device.capacity or {}
    faults = label_name(device.name, f"{path}.name")
    count = len(attributes) + len(capacity)
    if count > _MOST_VALUES:
        what = "the total number of attributes and capacities"
        faults.append(invalid(path, count, f"{what} must not exceed {_MOST_VALUES}"))
    for name, attribute in attributes.items():
        faults += qualified_name(name, f"{path}.attributes")
        faults += _attribute(attribute, f"{path}.attributes[{name}]")
    for name, amount in capacity.items():
        faults += qualified_name(name, f"{path}.capacity")
        faults += _capacity(amount, f"{path}.capacity[{name}]", device.allow_multiple_allocations)
    if old is None or old.taints != device.taints:
        faults += each(device.taints, f"{path}.taints", _taint, most=_MOST_TAINTS)
    where = f"{path}.consumesCounters"
    faults += each(
        device.consumes_counters, where, _consumption, most=_MOST_CONSUMPTIONS,
        key=lambda one: one.counter_set,
    )  # fmt: skip
    faults += _place_of_device(device, path, per_device)
    good, bad = device.binding_conditions or (), device.binding_failure_conditions or ()
    return faults + binding_conditions(good, bad, path)


def _place_of_device(device: Device, path: str, per_device: bool) -> Faults:
    faults, given = _place(device, path, "must not be empty")
    if per_device:
        if not given:
            faults.append(required(path, _PLACES_OF_DEVICE))
        elif len(given) > 1:
            faults.append(invalid(path, f"{{{', '.join(given)}}}", _PLACES_OF_DEVICE))
        return faults
    if (device.node_name, device.node_selector, device.all_nodes) == (None, None, None):
        return []
    detail = (
        "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is "
        "set to true in the ResourceSlice spec"
    )
    return [invalid(path, None, detail)]


def _attribute(attribute: DeviceAttribute, path: str) -> Faults:
    given = [value for value in attribute.__dict__.values() if value is not None]
    faults: Faults = []
    for field, text in (("string", attribute.string), ("version", attribute.version)):
        if text is None:
            continue
        if field == "version" and not is_semver(text):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            faults.append(invalid(f"{path}.{field}", text, detail))
        if len(text) > _LONGEST_VALUE:
            faults.append(too_long(f"{path}.{field}", _LONGEST_VALUE))
    if len(given) != 1:
        shown = attribute if given else ""
        faults.append(invalid(path, shown, "exactly one value must be specified"))
    return faults


def _capacity(amount: DeviceCapacity, path: str, shared: bool | None) -> Faults:
    if amount.request_policy is None:
        return []
    where = f"{path}.requestPolicy"
    if not shared:
        return [forbidden(where, "allowMultipleAllocations must be true")]
    return request_policy(amount.request_policy, amount.value, where)


def _taint(taint: DeviceTaint, path: str) -> Faults:
    faults = metadata_checks.label_key(taint.key, f"{path}.key")
    if taint.value:
        faults += label_value(taint.value, f"{path}.value")
    if not taint.effect:
        return [*faults, required(f"{path}.effect")]
    return faults + effect(taint.effect, f"{path}.effect")
