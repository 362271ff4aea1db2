"""What thinks: embedding engines, their batching and caching, token counting, and the seams of the other models."""
