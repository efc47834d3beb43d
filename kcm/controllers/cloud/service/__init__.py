"""The service-lb controller: the load balancers of Services."""

from kcm.controllers.cloud.service.controller import ServiceLBController

__all__ = ["ServiceLBController"]
