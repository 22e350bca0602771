"""Every event reason, one line each with its description in the reference.

Events of failed pods use the pod's reason (`podproto.reasons`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class EventReason(StrEnum):
    """A reason of events.

    Attributes:
        meaning: for the reference.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        """Make a reason."""
        made = str.__new__(cls, word)
        made._value_, made.meaning = word, meaning
        return made

    BACK_OFF = "BackOff", "a container ends again and again, or its image cannot be had: the next try waits longer"
    CREATED = "Created", "a container was created"
    IMAGE_NEVER_PULL = "ErrImageNeverPull", "the image is not in the cache, and `imagePullPolicy` is `Never`"
    FAILED = "Failed", "a container could not be started; the message has the cause"
    SCHEDULING = "FailedScheduling", "what the pod waits for: a node with its labels, or those that start with it"
    PLAN = "FailedPlan", "the plan of the pod's containers could not be computed; it is tried again"
    POST_START = "FailedPostStartHook", "the `postStart` hook of a container failed, and the container was ended"
    IMAGE_NAME = "InspectFailed", "the name of an image is none"
    GAVE_BACK = "GaveBack", "another pod of its group got no node in time: the pod's job was ended, and it waits again"
    KILLING = "Killing", "a container, or the pod's job, is being ended, and why"
    KUBELET = "KubeletError", "something that nobody foresaw; it is tried again, and other pods go on"
    HEADLESS = "MadeHeadless", "a Service became headless, as there are no addresses of Services here"
    NOT_AS_ELSEWHERE = "NotAsElsewhere", "the pod runs, and a field of it has less effect than in other clusters"
    OOM_KILLING = "OOMKilling", "the kernel ended a process of the container, which had used its memory"
    PULLED = "Pulled", "an image is in the cache, and how long that took"
    PULLING = "Pulling", "an image is being pulled"
    QUEUED = "Queued", "Slurm has the job and no node for it yet; the message has Slurm's reason"
    SCHEDULED = "Scheduled", "Slurm gave the job its node"
    SERVICES = "ServicesUnreachable", "the node's network daemon refused the pod's table of Services; it is tried again"
    SLURM_SILENT = "SlurmSilent", "Slurm did not answer when the pod was to be submitted; it is tried again"
    STARTED = "Started", "a container runs"
    SUBMITTED = "Submitted", "the pod is a Slurm job now, with this number"
    UNHEALTHY = "Unhealthy", "a probe failed, with its words"
    UNSUPPORTED = "UnsupportedPod", "an ephemeral container asks for what cannot be"
