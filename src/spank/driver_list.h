/* Made by `make generate` from src/isthmus/model/network.py. */
#pragma once

#define DRIVER_LIST(X) \
    X(DRIVER_NONE, "none") \
    X(DRIVER_PRIVATE, "private") \
    X(DRIVER_FLANNEL, "flannel") \
    X(DRIVER_ROUTED, "routed") \
    X(DRIVER_CNI, "cni")

#define DRIVER_CHOICES "private, flannel, routed, cni or none"
#define DRIVER_ARGUMENT "[private|flannel|routed|cni|none]"
#define DRIVER_USAGE \
    "in a network that only its user reaches (private, also without a value), " \
    "in one for all (flannel), " \
    "in one without a tunnel where users are apart (routed), " \
    "in one of the site's own CNI plugins (cni), " \
    "or not at all (none)"
