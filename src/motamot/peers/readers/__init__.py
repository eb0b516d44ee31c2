"""Readers of event streams as they exist in the world, one file each."""
