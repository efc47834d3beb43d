"""The adapter for container runtimes that speak CRI v1, such as containerd and CRI-O."""
