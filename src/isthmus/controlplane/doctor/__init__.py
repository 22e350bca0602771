"""`isthmus doctor`: what may keep a user's cluster from working, each with what to do about it."""
