"""How simulated pods and nodes behave: scripts, stages, amounts and addresses, all of it pure."""
