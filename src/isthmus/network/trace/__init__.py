"""Why one reaches the other or not, from the very rules that are in force."""
