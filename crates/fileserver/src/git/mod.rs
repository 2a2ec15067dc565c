//! Files from git repositories: the back end `git` of the file server (`gitfs_remotes`), and the
//! folders that the pillar of `git` is compiled from.
//!
//! - [`repo`]: a remote with its mirror on this machine, and the trees taken out of it.
//! - [`remote`]: how remotes are written in the configuration.
//! - [`gitfs`]: which branch or tag is which environment; the serving itself is that of folders.
//!
//! All git work is done by the program `git`: it knows every transport, every helper and every
//! setting an administrator may have made. Nothing here writes into a user's repository.

pub mod gitfs;
pub mod remote;
pub mod repo;

pub use gitfs::GitFs;
pub use remote::Remote;
pub use repo::Repo;
