"""The layer slurm: the table of its filters."""

from __future__ import annotations

from collections.abc import Callable

from isthmus.filters.slurm.accounting import slurm_accounting_plan
from isthmus.filters.slurm.accounting_state import slurm_accounting_queries
from isthmus.filters.slurm.choices import slurm_health, slurm_priority, slurm_purge, slurm_site_files
from isthmus.filters.slurm.conf import slurm_conf, slurm_settings, slurm_widened, slurm_widened_mark
from isthmus.filters.slurm.files import slurm_openmpi, slurm_protected, slurm_protected_file
from isthmus.filters.slurm.gres import slurm_gres, slurm_gres_types
from isthmus.filters.slurm.nodes import slurm_fold, slurm_hardware, slurm_nodes
from isthmus.filters.slurm.partitions import slurm_partitions
from isthmus.filters.slurm.power import slurm_cloud, slurm_power
from isthmus.filters.slurm.record import slurm_recorded, slurm_shrunk
from isthmus.filters.slurm.site import (
    slurm_adopt_problems,
    slurm_compute,
    slurm_fair_memory,
    slurm_missing,
    slurm_qos_bounded,
    slurm_undeclared,
    slurm_users_of,
)

FILTERS: dict[str, Callable[..., object]] = {
    "slurm_accounting_plan": slurm_accounting_plan,
    "slurm_accounting_queries": slurm_accounting_queries,
    "slurm_adopt_problems": slurm_adopt_problems,
    "slurm_cloud": slurm_cloud,
    "slurm_compute": slurm_compute,
    "slurm_conf": slurm_conf,
    "slurm_fair_memory": slurm_fair_memory,
    "slurm_fold": slurm_fold,
    "slurm_gres": slurm_gres,
    "slurm_gres_types": slurm_gres_types,
    "slurm_hardware": slurm_hardware,
    "slurm_missing": slurm_missing,
    "slurm_nodes": slurm_nodes,
    "slurm_openmpi": slurm_openmpi,
    "slurm_partitions": slurm_partitions,
    "slurm_qos_bounded": slurm_qos_bounded,
    "slurm_health": slurm_health,
    "slurm_power": slurm_power,
    "slurm_priority": slurm_priority,
    "slurm_protected": slurm_protected,
    "slurm_protected_file": slurm_protected_file,
    "slurm_purge": slurm_purge,
    "slurm_recorded": slurm_recorded,
    "slurm_settings": slurm_settings,
    "slurm_shrunk": slurm_shrunk,
    "slurm_site_files": slurm_site_files,
    "slurm_undeclared": slurm_undeclared,
    "slurm_users_of": slurm_users_of,
    "slurm_widened": slurm_widened,
    "slurm_widened_mark": slurm_widened_mark,
}
