"""Opens a session by PAM as sshd does: `login.py SERVICE-FOLDER USER [COMMAND...]`.

What PAM says is printed, and how each phase ended; the command is then run in the session.
"""

import ctypes
import os
import subprocess
import sys

PAM = ctypes.CDLL("libpam.so.0")
LIBC = ctypes.CDLL(None)
LIBC.calloc.restype = ctypes.c_void_p


class Message(ctypes.Structure):
    _fields_ = (("style", ctypes.c_int), ("text", ctypes.c_char_p))


CONVERSE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_int,
    ctypes.POINTER(ctypes.POINTER(Message)),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)


class Conversation(ctypes.Structure):
    _fields_ = (("converse", CONVERSE), ("data", ctypes.c_void_p))


@CONVERSE
def show(count, messages, replies, data):
    for number in range(count):
        print("reported:", messages[number].contents.text.decode(), flush=True)
    replies[0] = LIBC.calloc(count, 16)
    return 0


def main(folder, user, *command):
    handle, conversation = ctypes.c_void_p(), Conversation(show, None)
    started = PAM.pam_start_confdir(
        b"isthmus", user.encode(), ctypes.byref(conversation), folder.encode(), ctypes.byref(handle)
    )
    assert started == 0, started
    for phase in (PAM.pam_acct_mgmt, PAM.pam_open_session):
        status = phase(handle, 0)
        print(f"{phase.__name__}: {status}", flush=True)
        if status:
            return status
    if command:
        subprocess.run(command, check=True)
    return PAM.pam_close_session(handle, 0)


if __name__ == "__main__":
    os.environ.clear()
    sys.exit(main(*sys.argv[1:]))
