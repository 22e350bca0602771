/* What goes to Slurm's logs bears the plugin's name: an admin reads many plugins in one file. */
#pragma once

#include <slurm/spank.h>

#define log_error(...) slurm_error("isthmus: " __VA_ARGS__)
#define log_info(...) slurm_info("isthmus: " __VA_ARGS__)
