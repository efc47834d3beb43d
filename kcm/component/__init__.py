"""What every process of kcm needs: options, flags, the selection of controllers, and their context.

`options` reads flags, environment and configuration file, `selection` selects the controllers,
`context` has what they share in a process, and `ticks` runs the passes of periodic loops.
"""
