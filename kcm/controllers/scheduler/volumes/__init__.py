"""The claims and volumes of pods, as the scheduler sees and chooses them."""
