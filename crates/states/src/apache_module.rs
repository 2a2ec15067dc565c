//! `apache_module`: modules of the Apache web server, on Debian.

use halite_modules::apache::Switch;
use halite_spec::{Need, states};

use crate::apache::switched;

states! {
    /// Modules of the Apache web server.
    "apache_module", needs = [
        Need::function("apache.a2enmod", "apache module could not be loaded"),
    ]: "enabled" => Enabled,
    "disabled" => Disabled,
}

switched! {
    Switch::Mod, "module",
    /// Make sure that a module is on.
    Enabled,
    /// Make sure that a module is off.
    Disabled,
}
