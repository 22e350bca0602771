"""CNI plugins, and the pods of drivers that use them."""
