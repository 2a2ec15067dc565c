//! `apache_site`: sites of the Apache web server, on Debian.

use halite_modules::apache::Switch;
use halite_spec::states;

use crate::apache::switched;

states! {
    /// Sites of the Apache web server.
    "apache_site": "enabled" => Enabled,
    "disabled" => Disabled,
}

switched! {
    Switch::Site, "site",
    /// Make sure that a site is on.
    Enabled,
    /// Make sure that a site is off.
    Disabled,
}
