"""The registry: invalid addresses, images without a recipe, quotas of unknown users, reserved names."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.filters.errors import InputError
from isthmus.filters.images.registry import registry_endpoint, registry_taken
from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site

ADDRESS = "registry_address"
IMAGES = "registry_images"
QUOTAS = "registry_quotas"
SIZES = ("registry_quota_gib", "registry_reserve_gib")
LAYER = "registry_layer_gib"


def registry_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the registry's address, images, quotas and users."""
    yield from _address(site)
    yield from _images(site)
    yield from _users(site)
    yield from _sizes(site)
    yield from _quotas(site)


def _address(site: Site) -> Iterator[str]:
    address = site.shared(ADDRESS)
    if address is None:
        return
    try:
        registry_endpoint(str(address))
    except InputError as error:
        yield site.problem(f"{ADDRESS}: {error.problem}", error.remedy, ADDRESS)


def _images(site: Site) -> Iterator[str]:
    wanted = site.shared(IMAGES)
    if wanted is None:
        return
    if not isinstance(wanted, list):
        yield site.problem(f"{IMAGES} is no list", "list names of build/images", IMAGES)
        return
    # By default a registry has the images of all recipes.
    known = site.role_specs["registry"]["argument_specs"]["main"]["options"][IMAGES]["default"]
    for name in wanted:
        if name not in known:
            error = unknown(f"image in {IMAGES}", str(name), known)
            yield site.problem(error.problem, error.remedy, IMAGES)


def _users(site: Site) -> Iterator[str]:
    for name in registry_taken(_names(site)):
        problem = f"user {name!r} would have the site's own images in the registry for theirs"
        yield site.problem(problem, "give them another name, or leave them out of registry_users", "name", value=name)


def _sizes(site: Site) -> Iterator[str]:
    for variable in SIZES:
        value = site.shared(variable)
        if value is not None and not _is_size(value):
            yield site.problem(f"{variable}: {value!r} is no size", "write GiB, 0 or more", variable)
    value = site.shared(LAYER)
    if value is not None and not (_is_size(value) and float(value) >= 1):
        yield site.problem(f"{LAYER}: {value!r} lets nobody push", "write GiB, 1 or more", LAYER)


def _quotas(site: Site) -> Iterator[str]:
    quotas = site.shared(QUOTAS)
    if quotas is None:
        return
    if not isinstance(quotas, dict):
        yield site.problem(f"{QUOTAS} is no dict", "write user: GiB", QUOTAS)
        return
    known = _names(site)
    for user, value in quotas.items():
        if known and user not in known:
            error = unknown(f"user in {QUOTAS}", str(user), known)
            yield site.problem(error.problem, error.remedy, QUOTAS)
        if not _is_size(value):
            yield site.problem(f"{QUOTAS}: {value!r} of {user} is no size", "write GiB, 0 or more", QUOTAS)


def _names(site: Site) -> list[str]:
    users = site.shared("registry_users")
    if isinstance(users, list):
        return [str(user) for user in users]
    return [str(user["name"]) for user in site.shared_list("base_users") if "name" in user]


def _is_size(value: object) -> bool:
    try:
        return not isinstance(value, bool) and 0 <= float(str(value)) < 1e6
    except ValueError:
        return False
