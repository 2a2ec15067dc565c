//! `apache_conf`: pieces of configuration of the Apache web server, on Debian.

use halite_modules::apache::Switch;
use halite_spec::states;

use crate::apache::switched;

states! {
    /// Pieces of configuration of the Apache web server.
    "apache_conf": "enabled" => Enabled,
    "disabled" => Disabled,
}

switched! {
    Switch::Conf, "conf",
    /// Make sure that a piece of configuration is on.
    Enabled,
    /// Make sure that a piece of configuration is off.
    Disabled,
}
