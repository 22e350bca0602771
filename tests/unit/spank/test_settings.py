import pytest

WRONG = {
    "default=": "not one of private, flannel, routed, cni or none",
    "default=bridge": "not one of private, flannel, routed, cni or none",
    "socket=relative": "not an absolute path",
    f"socket=/{'x' * 107}": "not an absolute path of at most 107",
    "timeout_s=0": "not a whole number from 1 to 600",
    "timeout_s=601": "not a whole number",
    "timeout_s=1.5": "not a whole number",
    "timeout_s=": "not a whole number",
    "timeout_s=99999999999999999999": "not a whole number",
    "init=": "not an absolute path",
    "init=isthmus_init": "not an absolute path",
    "partition=": "not a name, a colon and one of",
    "partition=:private": "not a name, a colon",
    "partition=gpu": "not a name, a colon",
    "partition=gpu:": "not a name, a colon",
    "user=a:b:private": "not a name, a colon",
    "user=bob:host": "not a name, a colon",
    "users=bob:none": "unknown; there are",
    "": "unknown; there are",
    "DEFAULT=none": "unknown; there are",
}
RIGHT = ["default=flannel", "partition=a:none", "partition=b:private", "user=a:none", "user=b:flannel"]
REPEATED = {
    "default=none default=private": "default is given twice",
    "user=bob:none user=bob:private": "user=bob is given twice",
    "partition=a:none user=a:none partition=a:none": "partition=a is given twice",
}


def test_right_words_are_taken_in_silence(plugin):
    assert plugin.run("slurmd", *RIGHT).logged == ""


@pytest.mark.parametrize("word", WRONG)
def test_wrong_word_is_reported_when_slurmd_starts(plugin, word):
    (error,) = plugin.run("slurmd", word).errors
    assert error.startswith(f"isthmus: the plugin is off until an administrator corrects plugstack.conf: {word}: ")
    assert WRONG[word] in error


@pytest.mark.parametrize("words", REPEATED)
def test_repeated_word_is_reported(plugin, words):
    (error,) = plugin.run("slurmd", *words.split()).errors
    assert error.endswith(f" corrects plugstack.conf: {REPEATED[words]}")


@pytest.mark.parametrize("program", ["prolog", "step", "epilog"])
def test_jobs_that_do_not_ask_go_on_while_the_plugin_is_off(plugin, daemon, program):
    fake = daemon()
    result = plugin.run(program, "default=nonsense")
    assert result.reported[-1] in {"rc=0", "exit=0"}
    assert "task=1" not in result.reported
    assert fake.calls == 0
    assert not (plugin.folder / "spank").exists()


@pytest.mark.parametrize("option", ["private", ""])
def test_job_that_asks_fails_clearly_while_the_plugin_is_off(plugin, daemon, option):
    fake = daemon()
    assert plugin.run("prolog", "default=nonsense", HOST_OPTION=option).reported == ["rc=0"]
    assert plugin.record("7.driver") == "private"
    assert "default=nonsense" in (plugin.record("7.error") or "")
    result = plugin.run("step", "default=nonsense")
    assert "task=1" in result.reported
    assert "off until an administrator corrects plugstack.conf: default=nonsense" in result.errors[-1]
    assert fake.calls == 0
