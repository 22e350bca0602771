"""Plain data: frozen dataclasses and enums without I/O, shared by every part."""
