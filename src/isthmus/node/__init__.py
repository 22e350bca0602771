"""Self-service joining of nodes made from the image, without a deployer.

On the controller: `main` (the service isthmus-joind) reads what role join has published (`manifest`), lets nodes in by
token (`tokens`, `admission`, `records`), signs their certificates (`certificates`) and seals what it answers (`seal`).
On the node: `joining` asks (`remote`), refuses what does not fit (`checks`), and brings the node about (`host`).
"""
