"""The contract between the kubelet and the supervisors of its pods; both import it, so neither has a copy of its own.

versions   which versions of it there are, and which one two sides agree on
frames     how messages and bytes of streams go over the channel
windows    flow control per stream
plan       what a supervisor runs: types, writer, strict reader
reports    what a supervisor says, checked
expansion  `$(NAME)` in commands and variables
logs       the format of a container's log, and what of it is asked for
folder     the names in a pod's folder
reasons    every reason of pods and containers

It needs nothing but the standard library and little of that, for a supervisor starts in each pod. What one side has
that the other may not know is a word of `features` in the supervisor's hello, or a field of the kubelet's request; who
does not know it ignores it.
"""

# Streams have windows; see `windows`.
WINDOWS = "windows"
