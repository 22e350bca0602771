/* The networks a job can have: the values of --pod-network, as src/isthmus/model/network.py names them. */
#pragma once

#include <stdbool.h>

enum driver { DRIVER_NONE, DRIVER_PRIVATE, DRIVER_FLANNEL };

#define DRIVER_CHOICES "private, flannel or none"

const char *driver_name(enum driver driver);

/* Returns whether there is a driver of that name. */
bool driver_read(const char *name, enum driver *driver);
