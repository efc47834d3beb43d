"""The service-lb controller: the load balancers of Services."""

from kcm.controllers.service.controller import ServiceLBController

__all__ = ["ServiceLBController"]
