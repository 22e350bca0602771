import re

from tests.support.clusters import jobs


def test_nodes_take_jobs(controller, computes):
    jobs.wait_for_nodes(controller, *(node.name for node in computes))


def test_nodes_are_written_as_ranges(controller, two_computes):
    names = controller.output("sinfo --all --noheader --format=%N | sort -u")
    assert re.search(r"\w\[\d+[-,]\d+", names)


def test_nodes_declare_what_the_inventory_says(controller, computes):
    for node in computes:
        declared = node.variables["slurm_node"]
        seen = jobs.fields(controller.output(f"scontrol show node {node.name}"))
        assert {"CPUTot": seen["CPUTot"], "RealMemory": seen["RealMemory"]} == {
            "CPUTot": str(declared.get("cpus", seen["CPUTot"])),
            "RealMemory": str(declared.get("memory_mib", seen["RealMemory"])),
        }


def test_memory_and_processes_are_in_cgroups(settings):
    wanted = {
        "ProctrackType": "proctrack/cgroup",
        "JobAcctGatherType": "jobacct_gather/cgroup",
        "SelectType": "select/cons_tres",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "ConstrainRAMSpace": "yes",
    }
    assert {key: settings[key] for key in wanted} == wanted
    assert "task/cgroup" in settings["TaskPlugin"].split(",")
    assert "contain" in settings["PrologFlags"].lower().split(",")
    assert "memory" in settings["SelectTypeParameters"].lower()


def test_limits_are_enforced(settings):
    assert {"associations", "limits", "qos"} <= set(settings["AccountingStorageEnforce"].lower().split(","))


def test_default_mpi_is_the_sites(settings, controller):
    assert settings["MpiDefault"] == controller.variables["slurm_mpi_default"]


def test_pmix_collects_in_a_ring(controller, managed):
    assert "PMIxCollFence=ring" in controller.output(f"cat {controller.variables['slurm_conf_dir']}/mpi.conf")


def test_compute_nodes_hold_no_configuration_of_their_own(computes, managed):
    for node in computes:
        assert not node.host.file("/etc/slurm/slurm.conf").exists
        assert "--conf-server" in node.output("ps -C slurmd,slurmd-wlm -o args")


def test_user_sees_the_same_cluster(login, user, settings):
    assert login.run_as(user, "scontrol ping").count("UP") == 1
    assert login.run_as(user, "sacctmgr --noheader --parsable2 show cluster format=cluster") == settings["ClusterName"]
