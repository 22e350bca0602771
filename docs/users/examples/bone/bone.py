"""How stiff is a bone, and how likely does it break: finite elements over MPI, and what is made of them in Python.

A quarter of a shaft, a stiff shell around a soft core, is pressed along its axis. Both materials contract alike, so the
stress is the same along the axis and known exactly: the stiffness is the sum of modulus times area, by the length. A
result that differs from it ends the program with status 1.

    mpirun -n 4 python3 bone.py [OUTPUT FOLDER]
"""

import json
import platform
import sys
import time
from pathlib import Path

import gmsh
import numpy as np
import pandas as pd
import ufl
from dolfinx import fem, mesh
from dolfinx.fem.petsc import LinearProblem
from dolfinx.io import gmshio
from mpi4py import MPI
from scipy import stats

LENGTH_MM, OUTER_MM, INNER_MM, SIZE_MM = 40.0, 12.0, 8.0, 1.6
SHELL, CORE = 1, 2
MODULUS_MPA = {SHELL: 17_000.0, CORE: 500.0}
POISSON = 0.3
STRAIN = 0.001
# Yield strain of bone in compression: mean and deviation of a normal distribution.
YIELD = stats.norm(0.0098, 0.0009)
LOADS_N = {"standing": 700.0, "walking": 2_400.0, "stumbling": 7_200.0, "falling": 55_000.0}
# The mesh's faces are flat, so its areas are a little smaller than the circles'.
AREA_LIMIT, SOLVER_LIMIT = 0.01, 1e-5


def make_mesh(comm):
    """Mesh the quarter on the first rank; return mesh and the material of each cell."""
    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)
    if comm.rank == 0:
        quarter = (0, 0, 0, 0, 0, LENGTH_MM)
        shell = gmsh.model.occ.addCylinder(*quarter, OUTER_MM, angle=np.pi / 2)
        core = gmsh.model.occ.addCylinder(*quarter, INNER_MM, angle=np.pi / 2)
        (_, pieces) = gmsh.model.occ.fragment([(3, shell)], [(3, core)])
        gmsh.model.occ.synchronize()
        inside = [tag for _, tag in pieces[1]]
        outside = [tag for _, tag in pieces[0] if tag not in inside]
        gmsh.model.addPhysicalGroup(3, outside, SHELL)
        gmsh.model.addPhysicalGroup(3, inside, CORE)
        gmsh.option.setNumber("Mesh.MeshSizeMax", SIZE_MM)
        gmsh.model.mesh.generate(3)
    domain, cells, _ = gmshio.model_to_mesh(gmsh.model, comm, 0)
    gmsh.finalize()
    return domain, cells


def solve(domain, cells):
    """Press the shaft; return displacement, its unknowns, and the force along the axis."""
    space = fem.functionspace(domain, ("Lagrange", 1, (3,)))
    modulus = fem.Function(fem.functionspace(domain, ("DG", 0)))
    for material, value in MODULUS_MPA.items():
        modulus.x.array[cells.find(material)] = value
    modulus.x.scatter_forward()

    def stress(u):
        strain, shear = ufl.sym(ufl.grad(u)), modulus / (2 * (1 + POISSON))
        return 2 * shear * (strain + POISSON / (1 - 2 * POISSON) * ufl.tr(strain) * ufl.Identity(3))

    def held(axis, place, value):
        facets = mesh.locate_entities_boundary(domain, 2, lambda x: np.isclose(x[axis], place))
        part = space.sub(axis)
        return fem.dirichletbc(np.float64(value), fem.locate_dofs_topological(part, 2, facets), part)

    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    nothing = ufl.inner(fem.Constant(domain, np.zeros(3)), v) * ufl.dx
    # Symmetry holds the sides; the ends move along the axis alone.
    bounds = [held(0, 0.0, 0), held(1, 0.0, 0), held(2, 0.0, 0), held(2, LENGTH_MM, -STRAIN * LENGTH_MM)]
    options = {"ksp_type": "cg", "ksp_rtol": 1e-10, "pc_type": "gamg"}
    found = LinearProblem(ufl.inner(stress(u), ufl.grad(v)) * ufl.dx, nothing, bounds, petsc_options=options).solve()
    # The work of the inner forces by the length is the force, four times that of the quarter.
    work = fem.assemble_scalar(fem.form(stress(found)[2, 2] * ufl.dx))
    force = -4 * domain.comm.allreduce(work, op=MPI.SUM) / LENGTH_MM
    return force, space.dofmap.index_map.size_global * 3


def known_force(domain, cells):
    """Return the force that the mesh's own areas, and those of true circles, must give."""
    dx = ufl.Measure("dx", domain, subdomain_data=cells)
    one = fem.Constant(domain, 1.0)
    volumes = {
        material: domain.comm.allreduce(fem.assemble_scalar(fem.form(one * dx(material))), op=MPI.SUM)
        for material in MODULUS_MPA
    }
    circles = {SHELL: np.pi * (OUTER_MM**2 - INNER_MM**2), CORE: np.pi * INNER_MM**2}
    meshed = sum(MODULUS_MPA[each] * 4 * volume / LENGTH_MM for each, volume in volumes.items()) * STRAIN
    return meshed, sum(MODULUS_MPA[each] * area for each, area in circles.items()) * STRAIN


def risks(force):
    """Return for each load its strain, the factor until it breaks, and how likely that is."""
    table = pd.DataFrame({"load_n": pd.Series(LOADS_N)})
    table["strain"] = table["load_n"] * STRAIN / force
    table["factor"] = YIELD.mean() / table["strain"]
    table["risk"] = YIELD.cdf(table["strain"])
    return table.round(6)


def main():
    """Run the pipeline; the first rank writes a table and one line of JSON."""
    comm = MPI.COMM_WORLD
    began = time.perf_counter()
    domain, cells = make_mesh(comm)
    force, unknowns = solve(domain, cells)
    meshed, circles = known_force(domain, cells)
    hosts = comm.gather(platform.node())
    is_right = abs(force / meshed - 1) < SOLVER_LIMIT and abs(force / circles - 1) < AREA_LIMIT
    if comm.rank == 0:
        table = risks(force)
        if len(sys.argv) > 1:
            folder = Path(sys.argv[1])
            folder.mkdir(parents=True, exist_ok=True)
            table.to_csv(folder / "bone.csv")
        print(table.to_string())
        figures = {
            "program": "bone",
            "ranks": comm.size,
            "hosts": len(set(hosts)),
            "unknowns": unknowns,
            "stiffness_n_per_mm": round(force / (STRAIN * LENGTH_MM), 1),
            "known_n_per_mm": round(circles / (STRAIN * LENGTH_MM), 1),
            "risk_falling": float(table["risk"]["falling"]),
            "seconds": round(time.perf_counter() - began, 3),
            "verified": bool(is_right),
        }
        print(json.dumps(figures), flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
