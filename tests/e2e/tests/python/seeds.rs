//! The Python of the examples, unmodified.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use halite_e2e::{Machine, free_port, halite};

use crate::{example, inside, returned, sync};

#[test]
fn custom_grains_and_metrics() {
    let machine = Machine::new();
    machine.write(
        "srv/salt/_grains/custom_grains.py",
        &example("blue_green/salt/_grains/custom_grains.py"),
    );
    machine.write(
        "srv/salt/_modules/prometheus.py",
        &example("blue_green/salt/_modules/prometheus.py"),
    );
    sync(&machine);
    let env = returned(&machine, &["grains.get", "env"]);
    assert!(["\"production\"", "\"staging\"", "\"development\""].contains(&env.as_str()), "{env}");
    let ran = machine.call(&["prometheus.generate_metrics"]).code(0);
    ran.says("salt_minion_info{version=").says("salt_last_highstate_timestamp 0");
}

/// A web server that says all is well, until the test ends; returns its port.
fn healthy() -> u16 {
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port was free just now");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut request = [0; 2048];
            let _ = stream.read(&mut request);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    port
}

#[test]
fn a_blue_green_switch() {
    let port = healthy().to_string();
    let machine = Machine::new();
    // The example names a port that somebody may have already.
    let module = example("blue_green/salt/_modules/deploy.py").replace("8081", &port);
    machine.write("srv/salt/_modules/deploy.py", &module);
    machine.write("ns/etc/active_env", "green\n");
    machine.write(
        "ns/etc/nginx/conf.d/upstream.conf",
        "upstream app {\n    server 127.0.0.1:8082;\n}\n",
    );
    machine.write("ns/etc/init.d/nginx", "#!/bin/sh\necho \"$1\" >> /opt/nginx.log\n");
    machine
        .write("bin/docker-compose", "#!/bin/sh\necho \"$APP_VERSION $*\" >> /opt/compose.log\n");
    machine.write("bin/service", "#!/bin/sh\nexec /etc/init.d/$1 $2\n");
    machine
        .write("bin/systemctl", "#!/bin/sh\nfor last; do :; done\necho \"$*\" >> /opt/nginx.log\n");
    sync(&machine);
    let here = machine.path("").display().to_string();
    let script = format!(
        "chmod +x /etc/init.d/nginx {here}/bin/*\nPATH={here}/bin:$PATH {} call -c {here}/etc/salt \
         deploy.blue_green_switch shop v2 --out=json",
        halite().display()
    );
    let ran = inside(&machine, &script);
    ran.code(0).says("Successfully switched from green to blue");
    let read = |path: &str| machine.read(path).unwrap_or_default();
    assert_eq!(read("ns/etc/active_env").trim(), "blue");
    assert!(
        read("ns/etc/nginx/conf.d/upstream.conf").contains(&format!("server 127.0.0.1:{port};"))
    );
    assert_eq!(read("ns/opt/compose.log"), "v2 -f /opt/shop/blue/docker-compose.yml up -d\n");
    assert!(read("ns/opt/nginx.log").contains("reload"), "{}", read("ns/opt/nginx.log"));
}

#[test]
fn an_application_is_deployed_from_git() {
    let port = healthy().to_string();
    let machine = Machine::new();
    let here = machine.path("").display().to_string();
    let here = here.trim_end_matches('/').to_owned();
    // The module names a port that somebody may have already, and loads only beside systemd.
    let module = example("python_app/salt/_modules/deployment.py")
        .replace("8000", &port)
        .replace("/usr/bin/systemctl", &format!("{here}/bin/systemctl"));
    machine.write("srv/salt/_modules/deployment.py", &module);
    machine
        .write("srv/salt/_states/python_app.py", &example("python_app/salt/_states/python_app.py"));
    machine.write(
        "srv/salt/app.sls",
        &format!(
            "myapp:\n  python_app.deployed:\n    - version: v2.3.1\n    - repo_url: {}\n    - health_endpoint: /api/health\n",
            machine.path("repo").display()
        ),
    );
    machine.write("bin/systemctl", "#!/bin/sh\nexit 0\n");
    machine.write("bin/service", "#!/bin/sh\nexit 0\n");
    machine.write("ns/etc/init.d/myapp", "#!/bin/sh\nexit 0\n");
    for tool in ["pip", "python"] {
        machine.write(
            &format!("ns/opt/venvs/myapp/bin/{tool}"),
            &format!("#!/bin/sh\necho {tool} $* >> /opt/venv.log\n"),
        );
    }
    sync(&machine);
    let apply = format!(
        "PATH={here}/bin:$PATH {} call -c {here}/etc/salt state.apply app",
        halite().display()
    );
    let script = format!(
        "chmod +x {here}/bin/* /opt/venvs/myapp/bin/* /etc/init.d/myapp\n\
         export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n\
         git config --global --add safe.directory '*'\n\
         git init -q {here}/repo\ntouch {here}/repo/requirements.txt\n\
         git -C {here}/repo add .\ngit -C {here}/repo commit -qm x\ngit -C {here}/repo tag v2.3.1\n\
         {apply} test=True\ntest ! -e /opt/apps/myapp\n{apply}\n{apply}\n"
    );
    let ran = inside(&machine, &script);
    ran.code(0)
        // Functions called by functions get no shell, in Salt neither: the module's `||` is an argument.
        .says("Would update myapp from  to v2.3.1")
        .says("Deployed myapp v2.3.1 successfully");
    assert!(machine.path("ns/opt/apps/myapp/requirements.txt").exists());
    assert!(machine.read("ns/opt/venv.log").is_some_and(|log| log.contains("pip install -r")));
}
