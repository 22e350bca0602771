"""Homes for the supervisor's parts: one that answers at once, in the caller's own thread."""


def inline(work, then):
    """Do work now; `then` gets its error."""
    try:
        work()
    except OSError as error:
        then(error)
    else:
        then(None)


async def call(work):
    """Return what work returns."""
    return work()
