//! Times targets over 10,000 minions: `cargo run --release -p halite-target --example match_10k`.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::time::Instant;

use halite_target::{Expr, Index, TargetType};
use halite_value::{dict, list};

fn main() {
    let mut index = Index::new();
    for n in 0..10_000 {
        let id = format!("web{n}.example.org");
        index.set_accepted(&id, true);
        let os = ["Debian", "Ubuntu", "CentOS", "Arch"][n % 4];
        let eth = list![format!("10.0.{}.{}", n / 250, n % 250)];
        let grains = dict! {
            "os" => os, "id" => &id, "roles" => list!["web", format!("r{}", n % 100)],
            "ip_interfaces" => dict! { "eth0" => eth.clone() }, "ipv4" => eth,
        };
        index.set_grains(&id, grains.as_dict().cloned());
    }
    for target in [
        "G@os:Debian",
        "G@os:D*",
        "P@os:(deb|arch).*",
        "G@id:web77*",
        "G@roles:r5 and not web5*",
        "*",
        "web1*",
        "E@web[0-9]5",
        "G@ip_interfaces:eth0:10.0.3.*",
        "S@10.0.3.0/24",
        "G@*:r5",
        "L@web1.example.org",
    ] {
        let expr = Expr::of(target, TargetType::Compound).expect("valid");
        let first = Instant::now();
        let found = index.candidates(&expr, true).len();
        let first = first.elapsed();
        let again = Instant::now();
        index.candidates(&expr, true);
        println!("{target:32} {found:6} first {first:>10.1?} again {:>10.1?}", again.elapsed());
    }
}
