"""The subcommands of `isthmus`, a module each: `register(subparsers)`."""
