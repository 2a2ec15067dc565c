//! What an accepted minion may ask its master: a closed list.

use halite_value::{Dict, SmolStr, Value};

use crate::{Error, Fields, Jid, RETURNS, Return};

/// A request of a minion, after decryption. Who asks is known from the session, not from here.
#[derive(Clone, Debug)]
pub enum MinionRequest {
    Pillar {
        grains: Dict,
        saltenv: Option<SmolStr>,
        pillarenv: Option<SmolStr>,
        overrides: Dict,
        extra: Dict,
        /// An external source for this time only.
        ext: Option<Dict>,
        clean_cache: bool,
    },
    MasterOpts {
        env_only: bool,
    },
    MasterTops {
        opts: Dict,
    },
    FileEnvs,
    FileList(FileRequest),
    FileListEmptyDirs(FileRequest),
    DirList(FileRequest),
    SymlinkList(FileRequest),
    FileFind(FileRequest),
    FileHash(FileRequest),
    FileHashAndStat(FileRequest),
    ServeFile {
        file: FileRequest,
        offset: u64,
        gzip: Option<i64>,
    },
    /// A file the minion sends, as path components.
    FileReceive {
        path: Vec<String>,
        offset: u64,
        size: u64,
        data: Vec<u8>,
    },
    Mine {
        data: Dict,
        clear: bool,
    },
    MineGet {
        tgt: Value,
        tgt_type: SmolStr,
        functions: Value,
    },
    MineDelete {
        function: SmolStr,
    },
    MineFlush,
    /// One event, or several: `load` is what a single one is fired with.
    Event {
        load: Dict,
    },
    Return(Return),
    /// Several, each as it would come alone, from a Halite minion.
    Returns(Vec<Value>),
    SyndicReturn {
        load: Value,
    },
    Runner {
        function: SmolStr,
        args: Vec<Value>,
        load: Dict,
    },
    Publish {
        load: Dict,
    },
    PublishReturn {
        jid: Jid,
    },
    PublishAndWait {
        load: Dict,
    },
    RevokeAuth {
        preserve_cache: bool,
    },
    RegisterResources {
        load: Dict,
    },
}

/// A question about files of an environment.
#[derive(Clone, Debug, Default)]
pub struct FileRequest {
    pub path: SmolStr,
    pub saltenv: SmolStr,
    pub prefix: SmolStr,
}

impl FileRequest {
    fn read(fields: &Fields<'_>) -> Result<Self, Error> {
        let env = match fields.optional("saltenv") {
            None => "base".into(),
            Some(env) => env.to_str(),
        };
        Ok(Self {
            path: fields.text_or("path", "")?,
            saltenv: env,
            prefix: fields.text_or("prefix", "")?,
        })
    }
}

impl MinionRequest {
    /// Reads a decrypted load. `nonce`, `tok` and `sig` are the session's business.
    pub fn read(load: &Dict) -> Result<Self, Error> {
        let fields = Fields(load);
        let command = fields.text("cmd")?;
        let unsigned = |name: &'static str| -> Result<u64, Error> {
            fields.int_or(name, 0)?.try_into().map_err(|_| Error::Type(name))
        };
        Ok(match command.as_str() {
            "_pillar" => Self::Pillar {
                grains: fields.dict_or_empty("grains")?,
                saltenv: fields.optional("saltenv").map(|env| env.to_str()),
                pillarenv: fields.optional("pillarenv").map(|env| env.to_str()),
                overrides: fields.dict_or_empty("pillar_override")?,
                extra: fields.dict_or_empty("extra_minion_data")?,
                ext: Some(fields.dict_or_empty("ext")?).filter(|ext| !ext.is_empty()),
                clean_cache: fields.flag("clean_cache"),
            },
            "_master_opts" => Self::MasterOpts { env_only: fields.flag("env_only") },
            "_master_tops" => Self::MasterTops { opts: fields.dict_or_empty("opts")? },
            "_file_envs" => Self::FileEnvs,
            "_file_list" => Self::FileList(FileRequest::read(&fields)?),
            "_file_list_emptydirs" => Self::FileListEmptyDirs(FileRequest::read(&fields)?),
            "_dir_list" => Self::DirList(FileRequest::read(&fields)?),
            "_symlink_list" => Self::SymlinkList(FileRequest::read(&fields)?),
            "_file_find" => Self::FileFind(FileRequest::read(&fields)?),
            "_file_hash" => Self::FileHash(FileRequest::read(&fields)?),
            "_file_hash_and_stat" => Self::FileHashAndStat(FileRequest::read(&fields)?),
            "_serve_file" => Self::ServeFile {
                file: FileRequest::read(&fields)?,
                offset: unsigned("loc")?,
                gzip: fields.optional("gzip").and_then(|level| level.as_int()),
            },
            "_file_recv" => Self::FileReceive {
                path: fields
                    .list_or_empty("path")?
                    .into_iter()
                    .map(|part| part.as_str().map(str::to_owned).ok_or(Error::Type("path")))
                    .collect::<Result<_, _>>()?,
                offset: unsigned("loc")?,
                size: unsigned("size")?,
                data: fields.bytes("data")?,
            },
            "_mine" => {
                Self::Mine { data: fields.dict_or_empty("data")?, clear: fields.flag("clear") }
            }
            "_mine_get" => Self::MineGet {
                tgt: fields.value("tgt")?,
                tgt_type: match fields.optional("tgt_type").or_else(|| fields.optional("expr_form"))
                {
                    Some(kind) => kind.to_str(),
                    None => "glob".into(),
                },
                functions: fields.value("fun")?,
            },
            "_mine_delete" => Self::MineDelete { function: fields.text("fun")? },
            "_mine_flush" => Self::MineFlush,
            "_minion_event" => Self::Event { load: load.shallow_copy() },
            "_return" => Self::Return(Return::read(load)?),
            // One that is none must not cost the others their place: each is read by itself.
            RETURNS => Self::Returns(fields.list_or_empty("returns")?),
            "_syndic_return" => Self::SyndicReturn { load: fields.value("load")? },
            "minion_runner" => Self::Runner {
                function: fields.text("fun")?,
                args: fields.list_or_empty("arg")?,
                load: load.shallow_copy(),
            },
            "minion_pub" => Self::Publish { load: load.shallow_copy() },
            "pub_ret" => Self::PublishReturn { jid: Jid::new(&fields.text("jid")?)? },
            "minion_publish" => Self::PublishAndWait { load: load.shallow_copy() },
            "revoke_auth" => {
                Self::RevokeAuth { preserve_cache: fields.flag("preserve_minion_cache") }
            }
            "_register_resources" => Self::RegisterResources { load: load.shallow_copy() },
            other => return Err(Error::Unknown(other.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use halite_value::entries;

    use super::*;

    #[test]
    fn only_the_listed_commands_are_known() {
        let read = |command: &str| MinionRequest::read(&entries! { "cmd" => command });
        assert!(matches!(read("_file_envs"), Ok(MinionRequest::FileEnvs)));
        for hidden in [
            "_prep_auth_info",
            "_send_pub",
            "verify_minion",
            "_find_file",
            "__init__",
            "run_func",
            "publish",
        ] {
            assert!(matches!(read(hidden), Err(Error::Unknown(_))), "{hidden}");
        }
    }

    #[test]
    fn numbers_are_not_negative() {
        let load = entries! { "cmd" => "_serve_file", "path" => "x", "loc" => -1 };
        assert_eq!(MinionRequest::read(&load).unwrap_err(), Error::Type("loc"));
    }
}
