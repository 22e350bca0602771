"""CNI plugins, and Flannel's pods by way of them."""
