"""What the user's commands do: `up`, `down`, `status`, `logs`, `doctor`."""
