"""The user's commands `up`, `down`, `status`, `logs` and `doctor`."""
