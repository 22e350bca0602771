"""The deployment's side of network drivers: a folder for each driver with filters or checks."""
