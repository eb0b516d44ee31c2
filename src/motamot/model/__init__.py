"""One streaming completion of a model, put together from its fragments."""
