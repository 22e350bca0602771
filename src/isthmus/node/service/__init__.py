"""The controller's service isthmus-joind: who may join, and what a node is answered."""
