//! The file server, and the client of a machine that serves itself.
//!
//! - [`RelPath`]: the only form in which a path from outside reaches the disk.
//! - [`roots`]: the back end for folders of this machine; [`backend`] says what a back end is.
//! - [`git`]: the back end for git repositories.
//! - [`server`]: back ends as one, answering what file clients ask, in the shapes that travel.
//! - [`local`]: the file client without a master, with downloads by [`fetch`].
//! - [`source_hash`], [`hash`], [`url`]: the words users write.
//!
//! Absent: the network between minion and master; `transport` carries the answers of [`server`].

pub mod backend;
mod cache;
pub mod fetch;
mod ftp;
pub mod git;
pub mod hash;
mod http;
pub mod local;
pub mod options;
mod rel_path;
pub mod roots;
pub mod server;
pub mod source_hash;
pub mod url;

pub use local::Local;
pub use options::Options;
pub use rel_path::RelPath;
pub use roots::Roots;
pub use server::FileServer;
