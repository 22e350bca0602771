"""The routed network: checks of its range, and of the segment that all hosts must share."""
