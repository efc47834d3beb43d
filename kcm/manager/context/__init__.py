"""What all controllers of a process share: clients, caches, the queue, and which of them run."""
