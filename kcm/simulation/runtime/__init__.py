"""A container runtime whose containers are timers, scripted by annotations and stages.

Guarantees: what a container does depends only on its script, its pod's uid and its number of
restarts, so a replay does the same. Does not guarantee that anything runs: there are no processes,
no network, and no files except logs of one line.

It is given to whole kubelets (`services.new_simulated_services`). Simulated nodes, which are many
in one process, use `containers.Attempt` alone.

Source of what can be scripted: kwok.
"""
