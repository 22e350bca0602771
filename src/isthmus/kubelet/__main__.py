"""`python -m isthmus.kubelet`, as the control plane starts it."""

import sys

from isthmus.kubelet.main import main

if __name__ == "__main__":
    sys.exit(main())
