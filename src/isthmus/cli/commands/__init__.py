"""The subcommands of `isthmus`, one module each: `register(subparsers)`."""
