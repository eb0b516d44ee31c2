"""The scripted model: a model server that plays scripts, for tests and examinations."""
