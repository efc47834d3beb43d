"""What really runs containers, behind one narrow interface (`interface.py`)."""
