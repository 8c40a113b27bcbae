"""Profiles: ours can be read, and a malformed one is refused with what to do."""

import pytest

from gradspec._engine._plan import plan
from gradspec.profile import ProfileError, available, load_profile
from gradspec_lab.specimens import SCALE


def test_the_profiles_that_come_with_the_package_can_be_read():
    assert available() == ("cuda", "every-case", "full", "quick")
    assert (load_profile("quick").backend, load_profile("full").backend, load_profile("cuda").device) == (
        "aot_eager",
        "inductor",
        "cuda",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("backend = ", "is not valid TOML"),
        ("backnd = 'x'", "unknown key 'backnd': the keys are laws, scopes, backend"),
        ("directions = 'many'", "directions is 'many', expected int"),
        ("directions = 0", "directions must be at least 1"),
        ("laws = [3]", "expected a list of names"),
        ("time_limit = inf", "time_limit above 0 and at most 86400"),
        ("time_limit = nan", "time_limit above 0 and at most 86400"),
    ],
)
def test_a_malformed_profile_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)

    with pytest.raises(ProfileError, match=r"mine\.toml") as caught:
        load_profile(str(path))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_profile_that_does_not_exist_is_refused_with_the_names_of_those_that_do():
    with pytest.raises(ProfileError, match="choose from cuda, every-case, full, quick"):
        load_profile("quik")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device = 'meta'", "has the device 'meta': choose cpu or cuda"),
        ("backend = 'nosuch'", "has the backend 'nosuch': torch.compile knows .*inductor"),
    ],
)
def test_what_torch_would_refuse_in_every_check_is_refused_before_the_first(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)

    with pytest.raises(ProfileError, match=message):
        plan([SCALE], profile=load_profile(str(path)))


def test_a_profile_of_a_file_is_named_so_that_it_is_found_again(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("directions = 3")

    assert load_profile(load_profile(str(path)).name).directions == 3
