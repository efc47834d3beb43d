"""Validation of how much of a device's capacity requests may take.

Source: validateRequestPolicy in pkg/apis/resource/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcm.api.resource_v1.slices import CapacityRequestPolicy, CapacityRequestPolicyRange
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, required
from kcm.apimachinery.quantity import Quantity
from kcm.errors import FieldError
from kcm.kinds.validation.devices.parts import each

_MOST_VALUES = 10


def request_policy(policy: CapacityRequestPolicy, capacity: Quantity, path: str) -> Faults:
    """Checks the amounts, or the range of amounts, that a request may take of a capacity."""
    values, bounds = policy.valid_values, policy.valid_range
    if values and bounds is not None:
        detail = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at '
            "the same time"
        )
        return [forbidden(path, detail)]
    field = "validValues" if values else "validRange"
    if not values and bounds is None:
        return []
    if policy.default is None:
        return [required(f"{path}.default", f"required when {field} is defined")]
    where = f"{path}.{field}"
    if values:
        return _values(values, policy.default, capacity, where)
    assert bounds is not None
    return list(_range(bounds, policy.default, capacity, where))


def _values(values: Sequence[Quantity], default: Quantity, capacity: Quantity, path: str) -> Faults:
    detail = "values must be sorted in ascending order"
    faults = [
        invalid(f"{path}[{index}]", str(values[index]), detail)
        for index in range(1, len(values))
        if values[index - 1] > values[index]
    ]

    def option(value: Quantity, at: str) -> Faults:
        words = f"option is larger than capacity value: {capacity}"
        return [invalid(at, str(value), words)] if value > capacity else []

    faults += each(values, path, option, most=_MOST_VALUES, key=Quantity.value)
    if default not in values:
        detail = "default value is not valid according to the requestPolicy"
        faults.append(invalid(path, str(default), detail))
    return faults


def _range(
    bounds: CapacityRequestPolicyRange, default: Quantity, capacity: Quantity, path: str
) -> Iterator[FieldError]:
    least, most, step = bounds.min, bounds.max, bounds.step
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    checks = [
        ("min", least > capacity, least, f"min is larger than capacity value: {capacity}"),
        ("min", default < least, default, f"default is less than min: {least}"),
    ]
    if most is not None:
        checks += [
            ("max", least > most, least, f"min is larger than max: {most}"),
            ("max", most > capacity, most, f"max is larger than capacity value: {capacity}"),
            ("max", default > most, default, f"default is more than max: {most}"),
        ]
    if step is not None:
        first = least + step
        words = f"one step {first} is larger than capacity value: {capacity}"
        checks.append(("step", first > capacity, step, words))
        words = f"value is not a multiple of a given step ({step}) from ({least})"
        for value in (default, most):
            if value is not None and step.value():
                is_off = (value.value() - least.value()) % step.value() != 0
                checks.append(("step", is_off, value, words))
    for field, is_wrong, value, words in checks:
        if is_wrong:
            yield invalid(f"{path}.{field}", str(value), words)
