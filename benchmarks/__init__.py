"""Each published figure is one runnable file here; see README.md beside this file."""
