/* The steps that Slurm numbers itself. */
#pragma once

#define SLURM_EXTERN_CONT (0xfffffffc)
#define SLURM_BATCH_SCRIPT (0xfffffffb)
#define SLURM_INTERACTIVE_STEP (0xfffffffa)
#define SLURM_MAX_NORMAL_STEP_ID 0xfffffff0
