"""Deployment: the files of deploy/ as they stand, run by what they are for."""
