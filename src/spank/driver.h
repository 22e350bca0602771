/* The networks a job can have: the values of --pod-network, from driver_list.h. */
#pragma once

#include <stdbool.h>

#include "driver_list.h"

#define DRIVER_MEMBER(member, name) member,
enum driver { DRIVER_LIST(DRIVER_MEMBER) };
#undef DRIVER_MEMBER

const char *driver_name(enum driver driver);

/* Returns whether there is a driver of that name. */
bool driver_read(const char *name, enum driver *driver);
