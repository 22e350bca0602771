"""Every reason of pods and containers, Isthmus's own and Kubernetes': one line each, nothing else to change.

The line has the text of the reference, and the event of the container, if there is one. (While its job
is pending a pod has Slurm's own reason, and one whose job Slurm ended has the job's state.)
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why a pod or a container is as it is; each has one entry here.

    Attributes:
        meaning: for the reference.
        event: reason of the container's event; empty for none.
        words: what that event says before the message.
        is_of_pod: a pod that waits with it has an event of the same reason.
    """

    meaning: str
    event: str
    words: str
    is_of_pod: bool

    def __new__(cls, word: str, meaning: str, event: str = "", words: str = "", is_of_pod: bool = False) -> Self:
        """Make a reason."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.meaning, made.event, made.words, made.is_of_pod = meaning, event, words, is_of_pod
        return made

    @classmethod
    def known(cls, word: object) -> Reason | None:
        """Return a reason by its word; None for Slurm's words, and for those of a supervisor of another release."""
        found = cls._value2member_map_.get(word) if isinstance(word, str) else None
        return found if isinstance(found, cls) else None

    @classmethod
    def of_exit(cls, code: int) -> Reason:
        """Return the reason of a container that ended by itself."""
        return cls.ERROR if code else cls.COMPLETED

    COMPLETED = "Completed", "the container ended with exit code 0"
    CANNOT_RUN = (
        "ContainerCannotRun",
        "a volume, a profile or a folder of the container cannot be made; the message names it",
        "Failed",
    )
    CREATING = (
        "ContainerCreating",
        "the container waits for its image, for the job's node, or for what is made before it",
    )
    UNKNOWN = "ContainerStatusUnknown", "the job ended before its supervisor reported how the container did"
    CRASH_LOOP = (
        "CrashLoopBackOff",
        "the container ended, and is started again after a pause that grows to five minutes",
    )
    CONFIG = (
        "CreateContainerConfigError",
        "a ConfigMap, a Secret or a key of it is missing, or the image's user is not allowed",
        "Failed",
        "Error: ",
    )
    DEADLINE = "DeadlineExceeded", "the pod was active for longer than `activeDeadlineSeconds`", "", "", True
    IMAGE_NEVER_PULL = (
        "ErrImageNeverPull",
        "the image is not in the cache, and `imagePullPolicy` is `Never`",
        "ErrImageNeverPull",
    )
    IMAGE_PULL = (
        "ErrImagePull",
        "the image cannot be had; the message has the registry's words",
        "Failed",
        "Failed to pull image: ",
    )
    ERROR = "Error", "the container ended with another exit code than 0"
    SANDBOX = (
        "FailedCreatePodSandBox",
        "the pod's RuntimeClass is missing, or its handler is not `apptainer`",
        "",
        "Failed to create pod sandbox: ",
        True,
    )
    MOUNT = "FailedMount", "a volume names something that is missing, or cannot be made", "", "", True
    SUBMIT = "FailedSubmit", "Slurm refuses the job now; tried again after 10 s to 5 min", "", "", True
    HOME_FULL = "HomeFull", "the home has no room for the pod's folder; tried again after 10 s to 5 min", "", "", True
    HOME_UNAVAILABLE = "HomeUnavailable", "the home cannot be read or written just now; tried again", "", "", True
    IMAGE_BACK_OFF = "ImagePullBackOff", "the image could not be had, and the next try waits, 10 s to 5 min", "BackOff"
    IMAGE_NAME = "InvalidImageName", "the name of an image is none", "InspectFailed"
    PLAN = (
        "InvalidPlan",
        "the supervisor could not read its plan: kubelet and node have different versions",
    )
    NO_PLAN = "NoPlan", "no kubelet sent the job's plan within half an hour, so the job ended"
    NOT_SUBMITTED = "NotSubmitted", "the job is submitted when images and volumes are known"
    OOM_KILLED = "OOMKilled", "the kernel ended a process of the container, which had used its memory", "OOMKilling"
    INITIALIZING = "PodInitializing", "init containers come first"
    POST_START = (
        "PostStartHookError",
        "the `postStart` hook of a container failed, and the container was ended",
        "FailedPostStartHook",
    )
    START = "StartError", "the program of the container could not be started; the message has the cause", "Failed"
    SUPERVISOR = (
        "SupervisorError",
        "the program that runs the pod's containers failed; `slurm.log` in the pod's folder has more",
    )
    UNSUPPORTED = "UnsupportedPod", "the pod asks for what cannot be; [Pods](pods.md) lists it. No job was submitted"
