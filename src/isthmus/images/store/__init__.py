"""Layers that stay beside the images of a user, so that the next image on the same base is not made from nothing.

packing     a downloaded layer as one file: its content as a squashfs has it, and what its headers say
keeping     the folder of such files
making      an image of layers that are there and layers that are not
"""
