//! `file`: look at files and change them.
//!
//! The module is cut by what functions do: [`read`] looks, [`find`] searches, [`perms`] knows owners
//! and modes, [`tree`] makes, moves and removes, [`edit`], [`replace`], [`line`] and [`block`] change
//! content, [`managed`] cares for whole files. States use the same parts: an edit is computed by a
//! pure function first (`LineEdit::run`, `Block::run`, `Edit::run`), so that `test=True` shows
//! exactly what would be written.
//!
//! Surprising: every change of content is one atomic replacement by the host, so there is no
//! `bufsize`, and a reader never sees half a file.

pub mod backup;
pub mod block;
pub mod content;
pub mod diff;
pub mod edit;
pub mod find;
pub mod hashes;
pub mod line;
pub mod managed;
pub mod paths;
pub mod perms;
pub mod read;
pub mod regex;
pub mod replace;
pub mod source;
pub mod text;
pub mod tree;

use halite_spec::module;

use self::{
    backup::{
        delete_backup, list_backup, list_backups, list_backups_dir, remove_backup, restore_backup,
    },
    block::blockreplace,
    edit::{
        append, comment, comment_line, patch, prepend, psed, sed, sed_contains, seek_write,
        truncate, uncomment, write,
    },
    hashes::{check_hash, extract_hash, get_hash, get_source_sum, get_sum},
    managed::{
        apply_template_on_contents, check_file_meta, check_managed, check_managed_changes,
        get_diff, get_managed, manage_file,
    },
    paths::{basename, dirname, join, normpath, pardir},
    perms::{
        chattr, check_perms, chgrp, chown, get_gid, get_group, get_mode, get_selinux_context,
        get_uid, get_user, gid_to_group, group_to_gid, lchown, lsattr, restorecon, set_mode,
        set_selinux_context, stats, uid_to_user, user_to_uid,
    },
    read::{
        access, contains, contains_glob, contains_regex, directory_exists, diskusage, file_exists,
        grep, is_hardlink, is_link, lstat, open_files, path_exists_glob, readdir, search,
        seek_read, statvfs,
    },
    source::source_list,
    tree::{
        copy, get_devmm, is_blkdev, is_chrdev, is_fifo, link, makedirs, makedirs_perms, mkdir,
        mknod, mknod_blkdev, mknod_chrdev, mknod_fifo, move_, readlink, remove, rename, rmdir,
        symlink, touch,
    },
};
// Functions whose names are also those of the parts above: here the function is meant.
use self::{
    find::find as find_, line::line as line_, read::read as read_, replace::replace as replace_,
};

module! {
    /// Look at files and change them.
    "file": access, append, apply_template_on_contents, basename, blockreplace, chattr, check_file_meta,
    check_hash, check_managed, check_managed_changes, check_perms, chgrp, chown, comment,
    comment_line, contains, contains_glob, contains_regex, copy, delete_backup, directory_exists,
    dirname, diskusage, extract_hash, file_exists, find_, get_devmm, get_diff, get_gid, get_group,
    get_hash, get_managed, get_mode, get_selinux_context, get_source_sum, get_sum, get_uid,
    get_user, gid_to_group, grep, group_to_gid, is_blkdev, is_chrdev, is_fifo, is_hardlink,
    is_link, join, lchown, line_, link, list_backup, list_backups, list_backups_dir, lsattr,
    lstat, makedirs, makedirs_perms, manage_file, mkdir, mknod, mknod_blkdev, mknod_chrdev,
    mknod_fifo, move_, normpath, open_files, pardir, patch, path_exists_glob, prepend, psed, read_,
    readdir, readlink, remove, remove_backup, rename, replace_, restore_backup, restorecon, rmdir,
    search, sed, sed_contains, seek_read, seek_write, set_mode, set_selinux_context, source_list,
    stats, statvfs, symlink, touch, truncate, uid_to_user, uncomment, user_to_uid, write,
}
