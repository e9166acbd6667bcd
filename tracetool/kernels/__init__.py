"""Per-packet loops: numba over NumPy arrays. Each kernel has a slow, obvious twin in ``tests/naive/``."""
