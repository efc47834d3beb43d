"""The controllers that ask a cloud: about nodes, and for routes and load balancers."""
