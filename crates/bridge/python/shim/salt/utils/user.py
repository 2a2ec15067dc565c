"""Users and groups."""

import getpass
import grp
import os
import pwd


def get_user():
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return getpass.getuser()


def get_uid(user=None):
    if user is None:
        return os.geteuid()
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def get_specific_user():
    user = get_user()
    return "sudo_{}".format(os.environ["SUDO_USER"]) if user == "root" and os.environ.get("SUDO_USER") else user


def get_gid(group=None):
    if group is None:
        return os.getegid()
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def get_group_list(user, include_default=True):
    names = {entry.gr_name for entry in grp.getgrall() if user in entry.gr_mem}
    try:
        own = grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
        (names.add if include_default else names.discard)(own)
    except KeyError:
        pass
    return sorted(names)


def get_group_dict(user=None, include_default=True):
    return {name: grp.getgrnam(name).gr_gid for name in get_group_list(user, include_default)}


def get_gid_list(user, include_default=True):
    return sorted(get_group_dict(user, include_default).values())


def get_default_group(user):
    """The name of a user's own group."""
    return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name


def chugid_and_umask(runas, umask, group=None):
    set_group = group is not None and get_gid(group) != os.getegid()
    if set_group or (runas is not None and runas != get_user()):
        chugid(runas or get_user(), group)
    if umask is not None:
        os.umask(umask)


def chugid(runas, group=None):
    entry = pwd.getpwnam(runas)
    os.setgroups(get_gid_list(runas))
    os.setgid(get_gid(group) if group else entry.pw_gid)
    os.setuid(entry.pw_uid)
