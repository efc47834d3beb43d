"""Clouds: the interface of cloud providers, the calls that plans make of them, and the provider
`sim`.

See docs/designs/0037-calls-to-a-cloud-are-steps-of-a-plan.md.
"""
