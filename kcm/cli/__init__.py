"""The command `kcm`: one module per command, each imported only when it runs."""
