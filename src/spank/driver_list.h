/* Made by `make generate` from src/isthmus/model/network.py. */
#pragma once

#define DRIVER_LIST(X) \
    X(DRIVER_NONE, "none") \
    X(DRIVER_PRIVATE, "private") \
    X(DRIVER_FLANNEL, "flannel") \
    X(DRIVER_ROUTED, "routed")

#define DRIVER_CHOICES "private, flannel, routed or none"
#define DRIVER_ARGUMENT "[private|flannel|routed|none]"
#define DRIVER_USAGE \
    "in a network that only its user reaches (private, also without a value), " \
    "in one for all (flannel), " \
    "in one without a tunnel where users are apart (routed), " \
    "or not at all (none)"
