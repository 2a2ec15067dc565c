//! The deployments and the self-healing that guides to Salt describe, with a real HAProxy and a
//! real nginx. Where these are missing, they are installed.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use halite_e2e::{
    fleet::{Fleet, until},
    free_port, mail_server, need,
    site::{Make, PATIENCE, Site},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A web server that answers everything with its name. It is sick for as many questions after its
/// health as `sick` says.
fn web_server(name: &'static str, sick: Arc<AtomicI64>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let is_health = request[..read].starts_with(b"GET /health");
            let is_sick = is_health && sick.fetch_sub(1, Ordering::Relaxed) > 0;
            let status = if is_sick { "503 Service Unavailable" } else { "200 OK" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}",
                name.len()
            );
        }
    });
    port
}

fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split("\r\n\r\n").nth(1).map(str::to_owned)
}

const DEPLOY: &str = "\
{% set version = salt['pillar.get']('deploy:version', 'latest') %}
{% set target_minion = salt['pillar.get']('target') %}

prepare_deployment:
  salt.state:
    - tgt: 'roles:web'
    - tgt_type: grain
    - sls:
      - deployment.backup
      - deployment.healthcheck

remove_from_lb:
  salt.function:
    - name: haproxy.disable_server
    - tgt: 'roles:loadbalancer'
    - tgt_type: grain
    - arg:
      - web-backend
      - {{ target_minion }}
    - kwarg: {socket: {{ pillar['socket'] }}}
    - require:
      - salt: prepare_deployment

deploy_application:
  salt.state:
    - tgt: {{ target_minion }}
    - sls:
      - deployment.app
    - pillar:
        app_version: {{ version }}
    - require:
      - salt: remove_from_lb

verify_deployment:
  salt.function:
    - name: http.query
    - tgt: {{ target_minion }}
    - arg:
      - http://127.0.0.1:{{ pillar['port'] }}/health
    - kwarg:
        status: 200
    - retry:
        attempts: 10
        interval: 1
    - require:
      - salt: deploy_application

add_to_lb:
  salt.function:
    - name: haproxy.enable_server
    - tgt: 'roles:loadbalancer'
    - tgt_type: grain
    - arg:
      - web-backend
      - {{ target_minion }}
    - kwarg: {socket: {{ pillar['socket'] }}}
    - require:
      - salt: verify_deployment
";

/// Another guide's deployment.
const DEPLOY_BY_COMMANDS: &str = "\
remove_from_lb:
  salt.function:
    - name: cmd.run
    - tgt: 'G@role:loadbalancer'
    - tgt_type: compound
    - arg:
      - 'BIN/haproxy-disable web-backend web1'

deploy_app:
  salt.state:
    - tgt: 'web1'
    - sls:
      - app.deploy
    - require:
      - salt: remove_from_lb

run_smoke_tests:
  salt.function:
    - name: cmd.run
    - tgt: 'web1'
    - arg:
      - 'BIN/smoke-test.sh'
    - require:
      - salt: deploy_app

add_to_lb:
  salt.function:
    - name: cmd.run
    - tgt: 'G@role:loadbalancer'
    - tgt_type: compound
    - arg:
      - 'BIN/haproxy-enable web-backend web1'
    - require:
      - salt: run_smoke_tests
";

/// A real HAProxy before two web servers, with minions for one of them and for the balancer.
struct Balanced {
    fleet: Fleet,
    socket: String,
    web1: u16,
    front: u16,
    sick: Arc<AtomicI64>,
    _haproxy: Running,
}

impl Balanced {
    fn new() -> Self {
        let haproxy = need("haproxy", &["haproxy"]);
        let mut fleet = Fleet::new("auto_accept: True\n");
        let sick = Arc::new(AtomicI64::new(0));
        let (web1, web2) = (web_server("web1", sick.clone()), web_server("web2", Arc::default()));
        let front = free_port();
        let socket = fleet.machine.path("haproxy.sock").display().to_string();
        fleet.machine.write(
            "haproxy.cfg",
            &format!(
                "global\n  stats socket {socket} level admin\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 5s\n  timeout server 5s\n\
                 frontend www\n  bind 127.0.0.1:{front}\n  default_backend web-backend\n\
                 backend web-backend\n  balance roundrobin\n  server web1 127.0.0.1:{web1}\n  server web2 127.0.0.1:{web2}\n"
            ),
        );
        let haproxy = Command::new(haproxy)
            .args(["-db", "-f"])
            .arg(fleet.machine.path("haproxy.cfg"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let haproxy = Running(haproxy.expect("it starts"));
        until("the balancer serves", || get(front).is_some());
        fleet.start_minion("web1", "grains: {roles: [web]}");
        fleet.minion("lb1", "grains: {roles: [loadbalancer], role: loadbalancer}");
        fleet.wait_for("web1");
        Self { fleet, socket, web1, front, sick, _haproxy: haproxy }
    }

    /// Returns who answers behind the balancer.
    fn served(&self) -> Vec<String> {
        let mut names: Vec<String> = (0..6).filter_map(|_| get(self.front)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Writes a state that leaves the version behind.
    fn app(&self, sls: &str) {
        let version = self.fleet.machine.path("version");
        self.fleet.machine.write(
            &format!("srv/salt/{sls}.sls"),
            &format!(
                "{}:\n  file.managed:\n    - contents: {{{{ pillar.get('app_version', '1.0') }}}}\n",
                version.display()
            ),
        );
    }
}

#[test]
fn a_deployment_takes_the_server_out_of_the_balancer_and_back() {
    let site = Balanced::new();
    let Balanced { fleet, socket, web1, .. } = &site;
    for sls in ["backup", "healthcheck"] {
        let text = format!("{sls}:\n  test.succeed_without_changes: []\n");
        fleet.machine.write(&format!("srv/salt/deployment/{sls}.sls"), &text);
    }
    site.app("deployment/app");
    fleet.machine.write("srv/salt/orchestrate/deploy.sls", DEPLOY);
    assert_eq!(site.served(), ["web1", "web2"]);
    let deploy = |version: &str| {
        let pillar = format!(
            "pillar={{\"target\": \"web1\", \"port\": {web1}, \"socket\": \"{socket}\", \"deploy\": {{\"version\": \"{version}\"}}}}"
        );
        fleet.run(&["state.orchestrate", "orchestrate.deploy", &pillar])
    };
    // It takes a while until it is well.
    site.sick.store(2, Ordering::Relaxed);
    deploy("1.4.2").code(0).says("Succeeded: 5").says("Attempt 2:");
    assert_eq!(fleet.machine.read("version").unwrap_or_default().trim(), "1.4.2");
    assert_eq!(site.served(), ["web1", "web2"]);
    // One that stays sick is left out.
    site.sick.store(1000, Ordering::Relaxed);
    deploy("1.4.3").code(1).says("Succeeded: 3").says("Failed:    2").says("add_to_lb");
    assert_eq!(site.served(), ["web2"]);
    fleet
        .salt(&["lb1", "haproxy.enable_server", "web1", "web-backend", &format!("socket={socket}")])
        .code(0);
    assert_eq!(site.served(), ["web1", "web2"]);
}

#[test]
fn a_failed_smoke_test_leaves_the_server_out_of_the_balancer() {
    let site = Balanced::new();
    let Balanced { fleet, socket, .. } = &site;
    let bin = fleet.machine.path("bin").display().to_string();
    let script = |name: &str, text: &str| {
        fleet.machine.write(&format!("bin/{name}"), text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let path = fleet.machine.path(&format!("bin/{name}"));
        std::fs::set_permissions(path, mode).expect("it is ours");
    };
    for word in ["disable", "enable"] {
        let line = format!("{word} server {{}}/{{}}\\n");
        let text = format!(
            "#!/usr/bin/env python3\nimport socket, sys\ns = socket.socket(socket.AF_UNIX)\n\
             s.connect({socket:?})\ns.sendall(\"{line}\".format(*sys.argv[1:]).encode())\nsys.exit(len(s.recv(100).strip()))\n"
        );
        script(&format!("haproxy-{word}"), &text);
    }
    site.app("app/deploy");
    fleet.machine.write("srv/salt/orch/deploy.sls", &DEPLOY_BY_COMMANDS.replace("BIN", &bin));
    script("smoke-test.sh", "#!/bin/sh\nexit 0\n");
    fleet.run(&["state.orchestrate", "orch.deploy"]).code(0).says("Succeeded: 4");
    assert_eq!(site.served(), ["web1", "web2"]);
    script("smoke-test.sh", "#!/bin/sh\necho no answer\nexit 1\n");
    let ran = fleet.run(&["state.orchestrate", "orch.deploy"]).code(1);
    ran.says("Succeeded: 2").says("Failed:    2").says("no answer");
    assert_eq!(site.served(), ["web2"]);
}

/// An nginx, by the file with its process id; it ends with the test.
struct Nginx(PathBuf);

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }
}

/// The reactor of a guide, unchanged but for the mail account's host.
const RESTART: &str = "\
{% set minion_id = data['id'] %}

restart_nginx_on_minion:
  local.service.restart:
    - tgt: {{ minion_id }}
    - arg:
      - nginx

notify_ops:
  local.smtp.send_msg:
    - tgt: 'salt-master'
    - arg:
      - ops@example.com
      - \"Nginx restarted on {{ minion_id }}\"
      - \"Nginx service was stopped and automatically restarted\"
";

/// From the beacon that sees it to the mail that tells it; the web servers get their highstate.
#[test]
fn a_web_server_that_stopped_is_started_again() {
    let nginx = need("nginx", &["nginx"]).display().to_string();
    let (mail, mails) = mail_server();
    let port = free_port();
    let mut site = Site::new(Make::Ours, "auto_accept: True");
    let root = site.path("").display().to_string();
    let root = root.trim_end_matches('/');
    site.write(
        "nginx.conf",
        format!(
            "pid {root}/nginx.pid;\nerror_log {root}/error.log;\nevents {{}}\nhttp {{\n access_log off;\n client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3; uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;\n server {{ listen 127.0.0.1:{port}; location / {{ return 200 'here'; }} }}\n}}\n"
        ),
    );
    let _nginx = Nginx(site.path("nginx.pid"));
    let started = Command::new(&nginx).arg("-c").arg(site.path("nginx.conf")).status();
    assert!(started.is_ok_and(|status| status.success()));
    let is_here = || get(port).as_deref() == Some("here");
    until("nginx serves", is_here);
    // The machine's init knows this nginx as its service.
    let run = format!("{nginx} -c {root}/nginx.conf");
    site.write(
        "init.d/nginx",
        format!(
            "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: nginx\n### END INIT INFO\n\
             stop() {{ {run} -s quit; while [ -e {root}/nginx.pid ]; do sleep 0.1; done; }}\n\
             case $1 in\nstart) {run};;\nstop) stop;;\nrestart) [ -e {root}/nginx.pid ] && stop; {run};;\n\
             status) kill -0 $(cat {root}/nginx.pid 2>/dev/null) 2>/dev/null || exit 3;;\nesac\n"
        ),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(site.path("init.d/nginx"), mode).expect("it is ours");
    site.write(
        "master/etc/master.d/reactor.conf",
        format!(
            "reactor:\n  - 'salt/beacon/*/service/nginx':\n    - {root}/srv/reactor/nginx.sls\n\
             \x20 - 'salt/minion/*/service/nginx/stopped':\n    - {root}/srv/reactor/restart_nginx.sls\n\
             \x20   - {root}/srv/reactor/highstate.sls\n"
        ),
    );
    site.write(
        "srv/reactor/nginx.sls",
        "{% if not data['nginx']['running'] %}\ntell:\n  local.event.send:\n    - tgt: {{ data['id'] }}\n\
         \x20   - arg:\n      - salt/minion/{{ data['id'] }}/service/nginx/stopped\n{% endif %}\n",
    );
    site.write("srv/reactor/restart_nginx.sls", RESTART);
    site.write(
        "srv/reactor/highstate.sls",
        "web_servers:\n  runner.state.orchestrate:\n    - args:\n      - mods: heal\n",
    );
    site.write(
        "srv/salt/heal.sls",
        "web:\n  salt.state:\n    - tgt: 'roles:web'\n    - tgt_type: grain\n    - highstate: True\n",
    );
    site.write("srv/salt/top.sls", "base:\n  '*':\n    - healed\n");
    site.write(
        "srv/salt/healed.sls",
        format!("{root}/healed-{{{{ grains['id'] }}}}:\n  file.managed:\n    - contents: yes\n"),
    );
    site.start_master();
    let own = format!(
        "mount --bind {root}/init.d /etc/init.d && mount -t tmpfs none /run && exec \"$@\""
    );
    site.configure(
        "web1",
        "grains: {roles: [web]}\nbeacons: {service: [{services: {nginx: {onchangeonly: True}}}, {interval: 1}]}",
    );
    site.start("web1", Make::Ours, "salt-minion", &["unshare", "-m", "sh", "-c", &own, "sh"]);
    let account =
        format!("smtp.server: 127.0.0.1:{mail}\nsmtp.tls: False\nsmtp.sender: salt@example.com");
    site.minion("salt-master", Make::Ours, &account);
    site.answer(&["web1", "salt-master"]);
    site.salt(&["web1", "service.stop", "nginx"]).code(0);
    let told = mails.recv_timeout(PATIENCE).expect("a mail");
    assert!(told.contains("Nginx restarted on web1"), "{told}");
    until("nginx serves again", is_here);
    until("the highstate has run", || site.path("healed-web1").exists());
    assert!(!site.path("healed-salt-master").exists(), "it is no web server");
}
