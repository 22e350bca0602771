"""A squashfs 4.0 of a tree whose files are compressed already (fs/squashfs/squashfs_fs.h of Linux).

mksquashfs compresses what it is given, whether or not it did so yesterday. Here blocks are copied as they are, and only
the tables that name them are new:

    superblock | blocks and fragments | inodes | directories | fragment table | export table | id table

    blocks      a file's content in compressed blocks, and many small files in one
    copying     blocks from the files that have them into a new one
    tables      metadata in its own compressed blocks, and where what in it is
    directories what a directory lists
    writing     all of it, from a tree
"""
