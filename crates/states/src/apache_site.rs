//! `apache_site`: sites of the Apache web server, on Debian.

use halite_modules::apache::Switch;
use halite_spec::{Need, states};

use crate::apache::switched;

states! {
    /// Sites of the Apache web server.
    "apache_site", needs = [
        Need::function("apache.a2ensite", "apache module could not be loaded"),
    ]: "enabled" => Enabled,
    "disabled" => Disabled,
}

switched! {
    Switch::Site, "site",
    /// Make sure that a site is on.
    Enabled,
    /// Make sure that a site is off.
    Disabled,
}
