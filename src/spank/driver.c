/* Names of the drivers that driver_list.h has. */
#include "driver.h"

#include <stddef.h>
#include <string.h>

#define DRIVER_NAME(member, name) [member] = (name),
static const char *const names[] = {DRIVER_LIST(DRIVER_NAME)};
#undef DRIVER_NAME

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
