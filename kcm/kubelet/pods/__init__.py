"""The pods that the node shall run, and the mirror pods that show static ones in the API."""
