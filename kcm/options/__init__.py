"""The options of the manager: flags, environment, configuration file, and who is enabled.

`manager.ManagerOptions` has them all, `flags` computes the flags from the option groups and from
each controller's options, and `commandline` parses them.
"""
