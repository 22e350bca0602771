"""OpenStack's APIs by openstacksdk: the only code of this project that calls them; it runs on the deployer alone."""
