"""The command `isthmus`: one sub-command per tool."""
