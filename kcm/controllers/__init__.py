"""The controllers, each under its upstream name. `kcm.registry` lists them."""
