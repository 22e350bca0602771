"""The site's own CNI plugins: checks of their list, and of the range and interface that it must agree with."""
