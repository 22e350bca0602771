"""The contract between the kubelet and the supervisors of its pods: frames, and flow control per stream.

Both sides import it, so neither has a codec of its own. It needs nothing but the standard library, for a supervisor
starts in each pod. What one side has that the other may not know is a word of `features` in the supervisor's hello, or
a field of the kubelet's request; who does not know it ignores it, so that a kubelet works with the supervisors of pods
that were started before it.
"""

# Of the whole protocol; what is added to it is a feature.
VERSION = 1
# Streams have windows; see `windows`.
WINDOWS = "windows"
