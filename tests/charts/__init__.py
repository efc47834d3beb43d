"""Charts that helm installs on a whole kcm."""
