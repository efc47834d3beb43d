"""A runtime whose containers are timers: annotations and stages script what they do.

Guarantees: what a container does follows from its script, its pod's uid and how often it was
started, so that it does the same again when replayed. Does not guarantee that anything runs: there
are no processes, no network, and no files but a line in each log.

Used in two ways: as the kubelet's runtime (`runtime.SimulatedRuntime`), and by kcm.simulation,
which simulates many nodes with the containers (`containers.Attempt`) alone.

Source of what can be scripted: kwok.
"""
