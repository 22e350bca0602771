/* Made by `make generate` from src/isthmus/model/network.py. */
#pragma once

#define DRIVER_LIST(X) \
    X(DRIVER_NONE, "none") \
    X(DRIVER_PRIVATE, "private") \
    X(DRIVER_FLANNEL, "flannel")

#define DRIVER_CHOICES "private, flannel or none"
#define DRIVER_ARGUMENT "[private|flannel|none]"
#define DRIVER_USAGE \
    "in a network that only its user reaches (private, also without a value), " \
    "in one for all (flannel), " \
    "or not at all (none)"
