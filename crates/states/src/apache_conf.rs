//! `apache_conf`: pieces of configuration of the Apache web server, on Debian.

use halite_modules::apache::Switch;
use halite_spec::{Need, states};

use crate::apache::switched;

states! {
    /// Pieces of configuration of the Apache web server.
    "apache_conf", needs = [
        Need::function("apache.a2enconf", "apache module could not be loaded"),
        Need::program(&["a2enconf"], "apache module could not be loaded"),
    ]: "enabled" => Enabled,
    "disabled" => Disabled,
}

switched! {
    Switch::Conf, "conf",
    /// Make sure that a piece of configuration is on.
    Enabled,
    /// Make sure that a piece of configuration is off.
    Disabled,
}
