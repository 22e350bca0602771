"""The command `isthmus`: one subcommand per tool."""
