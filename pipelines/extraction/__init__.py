"""What is remembered of a MemCell."""
