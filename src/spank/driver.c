/* One table, so that a driver is added in one place. */
#include "driver.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
    [DRIVER_NONE] = "none",
    [DRIVER_PRIVATE] = "private",
    [DRIVER_FLANNEL] = "flannel",
};

const char *driver_name(enum driver driver)
{
    return names[driver];
}

bool driver_read(const char *name, enum driver *driver)
{
    bool found = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *driver = (enum driver)i;
            found = true;
        }
    }
    return found;
}
