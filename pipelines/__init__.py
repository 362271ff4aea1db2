"""Memory construction: importers, boundaries, extraction, evolution, and the Ray Data jobs that run them in bulk."""
