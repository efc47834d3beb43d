"""The cloud provider `sim`: a cloud whose instances are the simulated nodes.

Its state is in Redis. `kcm cloud` shows and scripts it.
"""
