"""What isthmus-exporter asks: a module for each source, pure where it reads an answer."""
