"""Leaf of the import graph: errors, settings, hashing and text helpers that every other package may use."""
