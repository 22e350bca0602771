"""The controller's service isthmus-joind: admission of nodes, and the response to them."""
