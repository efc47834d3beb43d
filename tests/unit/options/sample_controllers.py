"""A user's own controllers, as `--controller-module` loads them."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import CloudUse, Controller, Options, Watch, own_key
from kcm.reconcile.plan import Plan


class WidgetOptions(Options):
    concurrent_widget_syncs: int = Field(default=3, ge=1, description="Widgets at a time")
    widget_grace_period: timedelta = Field(default=timedelta(seconds=40), description="Grace")
    widget_eviction_rate: float = Field(default=0.1, description="Widgets per second")
    enable_widgets: bool = Field(default=True, description="Whether there are widgets")


class WidgetController(Controller):
    name = "widget-controller"
    short_name = "widget"
    options_type = WidgetOptions

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(Pod, own_key),)

    def reconcile(self, key: str, view: object) -> Plan:
        return Plan()


class Gadget(KubeObject):
    """A kind that no server serves."""

    api_version: str = "example.com/v1"
    kind: str = "Gadget"


class GadgetController(Controller):
    name = "gadget-controller"
    short_name = "gadget"
    reads = (Gadget,)


class QuietController(Controller):
    name = "quiet-controller"
    short_name = "quiet"
    disabled_by_default = True


class BalancingController(Controller):
    name = "balancing-controller"
    short_name = "balancing"
    cloud = CloudUse("load_balancers")


class InstancesController(Controller):
    name = "instances-controller"
    short_name = "instances"
    cloud = CloudUse("instances_v2")
