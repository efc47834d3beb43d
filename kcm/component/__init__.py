"""What every process of kcm needs: options, flags, the selection of controllers, and their context.

`options` reads flags, environment and configuration file, `selection` picks the controllers,
`context` is what they share in a process, and `ticks` runs the passes of periodic loops.
"""
