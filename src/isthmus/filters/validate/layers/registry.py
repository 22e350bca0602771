"""The registry: addresses that are none, and images without a recipe."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.filters.errors import InputError
from isthmus.filters.images.registry import registry_endpoint
from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site

ADDRESSES = ("registry_address", "registry_push_address")
IMAGES = "registry_images"


def registry_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the registry's addresses and images."""
    yield from _addresses(site)
    yield from _images(site)


def _addresses(site: Site) -> Iterator[str]:
    for variable in ADDRESSES:
        address = site.shared(variable)
        if address is None:
            continue
        try:
            registry_endpoint(str(address))
        except InputError as error:
            yield site.problem(f"{variable}: {error.problem}", error.remedy, variable)


def _images(site: Site) -> Iterator[str]:
    wanted = site.shared(IMAGES)
    if wanted is None:
        return
    if not isinstance(wanted, list):
        yield site.problem(f"{IMAGES} is no list", "list names of build/images", IMAGES)
        return
    # By default a registry has every recipe there is.
    known = site.role_specs["registry"]["argument_specs"]["main"]["options"][IMAGES]["default"]
    for name in wanted:
        if name not in known:
            error = unknown(f"image in {IMAGES}", str(name), known)
            yield site.problem(error.problem, error.remedy, IMAGES)
