"""The composition root: builds a kubelet bottom-up and runs it as a process."""
