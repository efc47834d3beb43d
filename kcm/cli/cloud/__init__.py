"""The command `kcm cloud`, which shows and scripts the simulated cloud."""
