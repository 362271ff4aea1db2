"""The HTTP API: EverCore V1's names, and one shape for answers and errors."""
