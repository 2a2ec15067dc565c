//! The deployments and the self-healing that guides to Salt describe, with a real HAProxy and a
//! real nginx. Where these are missing, they are installed.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};

use halite_e2e::{
    fleet::{Fleet, until},
    free_port, need,
};

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A web server that answers everything with its name.
fn web_server(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}",
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
        attempts: 2
        interval: 1
    - require:
      - salt: deploy_application

run_smoke_tests:
  salt.function:
    - name: cmd.run
    - tgt: {{ target_minion }}
    - arg:
      - {{ pillar['smoke'] | yaml_dquote }}
    - require:
      - salt: verify_deployment

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
      - salt: run_smoke_tests
";

#[test]
fn a_deployment_takes_the_server_out_of_the_balancer_and_back() {
    need("haproxy", &["haproxy"]);
    let mut fleet = Fleet::new("auto_accept: True\n");
    let (web1, web2, front) = (web_server("web1"), web_server("web2"), free_port());
    let socket = fleet.machine.path("haproxy.sock").display().to_string();
    fleet.machine.write(
        "haproxy.cfg",
        &format!(
            "global\n  stats socket {socket} level admin\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 5s\n  timeout server 5s\n\
             frontend www\n  bind 127.0.0.1:{front}\n  default_backend web-backend\n\
             backend web-backend\n  balance roundrobin\n  server web1 127.0.0.1:{web1}\n  server web2 127.0.0.1:{web2}\n"
        ),
    );
    let haproxy = Command::new("haproxy")
        .args(["-db", "-f"])
        .arg(fleet.machine.path("haproxy.cfg"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _haproxy = Running(haproxy.expect("it starts"));
    until("the balancer serves", || get(front).is_some());
    let version = fleet.machine.path("version");
    fleet
        .machine
        .write("srv/salt/deployment/backup.sls", "backup:\n  test.succeed_without_changes: []\n");
    fleet.machine.write(
        "srv/salt/deployment/app.sls",
        &format!(
            "{}:\n  file.managed:\n    - contents: {{{{ pillar['app_version'] }}}}\n",
            version.display()
        ),
    );
    fleet.machine.write("srv/salt/orchestrate/deploy.sls", DEPLOY);
    fleet.start_minion("web1", "grains: {roles: [web]}");
    fleet.minion("lb1", "grains: {roles: [loadbalancer]}");
    fleet.wait_for("web1");
    let served = || -> Vec<String> {
        let mut names: Vec<String> = (0..6).filter_map(|_| get(front)).collect();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(served(), ["web1", "web2"]);
    let pillar = |version: &str, smoke: &str| {
        format!(
            "pillar={{\"target\": \"web1\", \"port\": {web1}, \"socket\": \"{socket}\", \"smoke\": \"{smoke}\", \"deploy\": {{\"version\": \"{version}\"}}}}"
        )
    };
    fleet
        .run(&["state.orchestrate", "orchestrate.deploy", &pillar("1.4.2", "true")])
        .code(0)
        .says("Succeeded: 6");
    assert_eq!(fleet.machine.read("version").unwrap_or_default().trim(), "1.4.2");
    assert_eq!(served(), ["web1", "web2"]);
    // A failed smoke test leaves the server out.
    fleet
        .run(&["state.orchestrate", "orchestrate.deploy", &pillar("1.4.3", "false")])
        .code(1)
        .says("add_to_lb");
    assert_eq!(served(), ["web2"]);
    fleet
        .salt(&["lb1", "haproxy.enable_server", "web1", "web-backend", &format!("socket={socket}")])
        .code(0);
    assert_eq!(served(), ["web1", "web2"]);
}

#[test]
fn a_web_server_that_stopped_is_started_again() {
    need("nginx", &["nginx"]);
    let mut fleet = Fleet::new(
        "auto_accept: True\nreactor:\n  - 'salt/minion/*/service/nginx/stopped':\n    - {root}/srv/reactor/restart_nginx.sls\n",
    );
    let port = free_port();
    let root = fleet.machine.path("").display().to_string();
    let root = root.trim_end_matches('/');
    fleet.machine.write(
        "nginx.conf",
        &format!(
            "pid {root}/nginx.pid;\nerror_log {root}/error.log;\nevents {{}}\nhttp {{\n access_log off;\n client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3; uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;\n server {{ listen 127.0.0.1:{port}; location / {{ return 200 'here'; }} }}\n}}\n"
        ),
    );
    let command = format!("nginx -c {root}/nginx.conf");
    fleet.machine.write(
        "srv/reactor/restart_nginx.sls",
        &format!(
            "{{% set minion_id = data['id'] %}}\n\
             restart_nginx_on_minion:\n  local.cmd.run:\n    - tgt: {{{{ minion_id }}}}\n    - arg:\n      - {command}\n"
        ),
    );
    fleet.minion("web1", "");
    fleet.salt(&["web1", "cmd.run", &command]).code(0);
    until("nginx serves", || get(port).as_deref() == Some("here"));
    let stop = |fleet: &Fleet| {
        fleet.salt(&["web1", "cmd.run", &format!("kill $(cat {root}/nginx.pid)")]).code(0);
        until("nginx is gone", || TcpStream::connect(("127.0.0.1", port)).is_err());
    };
    stop(&fleet);
    fleet.call("web1", &["event.send", "salt/minion/web1/service/nginx/stopped"]).code(0);
    until("nginx serves again", || get(port).as_deref() == Some("here"));
    stop(&fleet);
}
