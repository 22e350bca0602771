"""`python -m isthmus.kubelet`, started by the control plane."""

import sys

from isthmus.kubelet.main import main

if __name__ == "__main__":
    sys.exit(main())
