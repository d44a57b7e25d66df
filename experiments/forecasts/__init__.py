"""Forecasts of launches: predicted by the model of memory, measured on a device, and both compared."""
