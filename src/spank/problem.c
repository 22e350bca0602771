/* Texts come from the daemon, files and users too, so nothing in them may break the line or move a terminal. */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

bool problem_set(struct problem *problem, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    for (char *c = problem->text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            *c = ' ';
        }
    }
    return false;
}
