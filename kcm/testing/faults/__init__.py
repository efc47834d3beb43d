"""Failures by script: what a test has happen to requests, nodes and pods of a control plane."""
