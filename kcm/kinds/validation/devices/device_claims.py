"""Validation of ResourceClaims, ResourceClaimTemplates and DeviceClasses.

Source: pkg/apis/resource/validation/validation.go, Kubernetes 1.36. Departure: the cost of an
expression is not estimated before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kcm.api.pods.resources import is_native
from kcm.api.resource_v1 import DeviceClass, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from kcm.api.resource_v1.claims import DeviceClassConfiguration
from kcm.api.resource_v1.requests import (
    DeviceAllocationConfiguration,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)
from kcm.apiextensions.cel.policy_programs import DEVICES, compile_expression
from kcm.apimachinery import metadata_checks, names
from kcm.apimachinery.field_errors import (
    IMMUTABLE,
    Faults,
    invalid,
    invalid_all,
    not_supported,
    required,
    too_long,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.devices.parts import (
    driver_name,
    each,
    effect,
    fully_qualified_name,
    json_object,
    label_name,
    label_value,
)

MOST = 32  # requests, constraints, configurations, selectors
_MOST_ALTERNATIVES = 8
_LONGEST_EXPRESSION = _LONGEST_PARAMETERS = 10 * 1024
_ALL, _EXACT = "All", "ExactCount"
_OPERATORS = ("Equal", "Exists")
_TRUTH = ("BOOL", "DYN")
_NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_ONE_FORM = "exactly one of `exactly` or `firstAvailable` is required"


def create(claim: ResourceClaim) -> Faults:
    faults = meta.metadata(claim, namespaced=True, name_rule=names.subdomain_faults)
    return faults + _claim_spec(claim.spec, "spec")


def update(new: ResourceClaim, old: ResourceClaim) -> Faults:
    changed = [invalid("spec", new.spec, IMMUTABLE)] if new.spec != old.spec else []
    return meta.metadata_update(new, old) + changed


def create_template(template: ResourceClaimTemplate) -> Faults:
    metadata = template.spec.metadata
    return [
        *meta.metadata(template, namespaced=True, name_rule=names.subdomain_faults),
        *metadata_checks.annotation_map(metadata.annotations, "spec.metadata.annotations"),
        *metadata_checks.labels(metadata.labels, "spec.metadata.labels"),
        *_claim_spec(template.spec.spec, "spec.spec"),
    ]


def update_template(new: ResourceClaimTemplate, old: ResourceClaimTemplate) -> Faults:
    changed = [invalid("spec", new.spec, IMMUTABLE)] if new.spec != old.spec else []
    return meta.metadata_update(new, old) + changed


def list_request_names(spec: ResourceClaimSpec) -> frozenset[str]:
    """Returns the names of all requests, and of the alternatives within them."""
    requests = spec.devices.requests or ()
    inner = (f"{one.name}/{sub.name}" for one in requests for sub in one.first_available or ())
    return frozenset([*(request.name for request in requests), *inner])


def _claim_spec(spec: ResourceClaimSpec, path: str) -> Faults:
    devices, where = spec.devices, f"{path}.devices"
    names = list_request_names(spec)

    def constraint(one: DeviceConstraint, at: str) -> Faults:
        return _constraint(one, at, names)

    def configuration(one: DeviceClaimConfiguration, at: str) -> Faults:
        return configured(one, at, names)

    return [
        *each(devices.requests, f"{where}.requests", _request, most=MOST, key=lambda r: r.name),
        *each(devices.constraints, f"{where}.constraints", constraint, most=MOST),
        *each(devices.config, f"{where}.config", configuration, most=MOST),
    ]


def _request(request: DeviceRequest, path: str) -> Faults:
    faults = label_name(request.name, f"{path}.name")
    exact, others = request.exactly, request.first_available
    if exact is not None and others:
        detail = f"{_ONE_FORM}, but multiple fields are set"
        return [*faults, invalid(path, None, detail)]
    if exact is not None:
        return faults + _details(exact, f"{path}.exactly")
    if not others:
        return [*faults, required(path, _ONE_FORM)]
    where = f"{path}.firstAvailable"
    return faults + each(
        others, where, _alternative, most=_MOST_ALTERNATIVES, key=lambda one: one.name
    )


def _alternative(request: DeviceSubRequest, path: str) -> Faults:
    return label_name(request.name, f"{path}.name") + _details(request, path)


def _details(request: ExactDeviceRequest | DeviceSubRequest, path: str) -> Faults:
    name, where = request.device_class_name, f"{path}.deviceClassName"
    faults = invalid_all(where, name, names.subdomain_faults(name)) if name else [required(where)]
    return [
        *faults,
        *each(request.selectors, f"{path}.selectors", selector, most=MOST),
        *_count(request.allocation_mode or "", request.count or 0, path),
        *each(request.tolerations, f"{path}.tolerations", toleration),
    ]


def _count(mode: str, count: int, path: str) -> Faults:
    where = f"{path}.count"
    if mode == _ALL:
        detail = f"must not be specified when allocationMode is '{_ALL}'"
        return [invalid(where, count, detail)] if count else []
    if mode == _EXACT:
        return [] if count > 0 else [invalid(where, count, "must be greater than zero")]
    return [not_supported(f"{path}.allocationMode", mode, (_ALL, _EXACT))]


def selector(one: DeviceSelector, path: str) -> Faults:
    """Checks a condition for devices: an expression that compiles and is true or false."""
    if one.cel is None:
        return [required(f"{path}.cel")]
    text, where = one.cel.expression, f"{path}.cel.expression"
    if len(text) > _LONGEST_EXPRESSION:
        return [too_long(where, _LONGEST_EXPRESSION)]
    compiled = compile_expression(text, DEVICES)
    if compiled.error:
        return [invalid(where, text, f"compilation failed: {compiled.error}")]
    if compiled.type not in _TRUTH:
        return [invalid(where, text, "must evaluate to bool")]
    return []


def toleration(one: DeviceToleration, path: str) -> Faults:
    faults = metadata_checks.label_key(one.key, f"{path}.key") if one.key else []
    match one.operator or "":
        case "Exists":
            if one.value:
                detail = "must be empty for operator `Exists`"
                faults.append(invalid(f"{path}.value", one.value, detail))
        case "Equal":
            faults += label_value(one.value, f"{path}.value")
        case "":
            faults.append(required(f"{path}.operator"))
        case other:
            faults.append(not_supported(f"{path}.operator", other, _OPERATORS))
    return faults + effect(one.effect, f"{path}.effect")


def _constraint(one: DeviceConstraint, path: str, names: Collection[str]) -> Faults:
    faults = request_names(one.requests or (), f"{path}.requests", names)
    if one.match_attribute is not None:
        return faults + fully_qualified_name(one.match_attribute, f"{path}.matchAttribute")
    if one.distinct_attribute is not None:
        return faults + fully_qualified_name(one.distinct_attribute, f"{path}.distinctAttribute")
    detail = (  # as upstream says it of none, too
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields '
        "are set"
    )
    return [*faults, required(path, detail)]


def request_names(given: Sequence[str], path: str, declared: Collection[str]) -> Faults:
    """Checks names of requests, each of which is there once at most."""

    def check(name: str, at: str) -> Faults:
        return request_name(name, at, declared)

    return each(given, path, check, most=MOST, key=str)


def request_name(name: str, path: str, declared: Collection[str]) -> Faults:
    """Checks the name of a request, or of one of its alternatives."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _NOT_A_REQUEST)]
    faults = [fault for part in parts for fault in label_name(part, path)]
    return faults if name in declared else [*faults, invalid(path, name, _NOT_A_REQUEST)]


def configured(
    one: DeviceClaimConfiguration | DeviceAllocationConfiguration,
    path: str,
    names: Collection[str],
) -> Faults:
    """Checks parameters for the devices of some requests."""
    return request_names(one.requests or (), f"{path}.requests", names) + parameters(one, path)


def parameters(
    one: DeviceClaimConfiguration | DeviceAllocationConfiguration | DeviceClassConfiguration,
    path: str,
) -> Faults:
    """Checks parameters for a driver."""
    if one.opaque is None:
        return [required(f"{path}.opaque")]
    return [
        *driver_name(one.opaque.driver, f"{path}.opaque.driver"),
        *json_object(one.opaque.parameters, f"{path}.opaque.parameters", _LONGEST_PARAMETERS),
    ]


def create_class(device_class: DeviceClass) -> Faults:
    faults = meta.metadata(device_class, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _class(device_class, None)


def update_class(new: DeviceClass, old: DeviceClass) -> Faults:
    return meta.metadata_update(new, old) + _class(new, old)


def _class(new: DeviceClass, old: DeviceClass | None) -> Faults:
    """Checks a class. Selectors and parameters that it had before are not checked again."""
    faults: Faults = []
    if old is None or new.spec.selectors != old.spec.selectors:
        faults += each(new.spec.selectors, "spec.selectors", selector, most=MOST)
    if old is None or new.spec.config != old.spec.config:
        faults += each(new.spec.config, "spec.config", _parameters_of_class, most=MOST)
    name = new.spec.extended_resource_name
    if name is not None and not _is_extended(name):
        detail = "must be a valid extended resource name"
        faults.append(invalid("spec.extendedResourceName", name, detail))
    return faults


_parameters_of_class: Callable[[DeviceClassConfiguration, str], Faults] = parameters


def _is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name_faults(f"requests.{name}")
