"""A runtime whose containers are timers: what they do is scripted, by annotations and stages.

Guarantees: what a container does follows from its script, its pod's uid and how often it
was started, so it is played again the same. Does not guarantee that anything runs: there
are no processes, no network, no files but a line in each log.

Used in two ways: behind the kubelet's runtime interface (`runtime.SimulatedRuntime`), and
by kcm.simulation, which plays many nodes on the containers (`containers.Attempt`) alone.

Source of what can be scripted: kwok.
"""
