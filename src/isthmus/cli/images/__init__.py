"""Parts of `isthmus images`: what the registry has of a user, and mirrors of images on the home."""
