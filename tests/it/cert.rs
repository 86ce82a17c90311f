//! The `gatewren cert` commands: show, renew, trust, install and revert a certificate while clients are connected.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::support::command::{refused, tell, tell_by, words};
use crate::support::machine::wait_until;
use crate::support::namespace::NetworkNamespace;
use crate::support::server::{Directory, Server, server};

/// The time limit for a new address to be in the certificate.
const A_MINUTE: Duration = Duration::from_mins(1);

/// curl's exit code for an unknown certificate authority.
const UNKNOWN_AUTHORITY: i32 = 60;

/// A certificate from another authority and its key, in a directory.
struct Pair {
    cert: PathBuf,
    key: PathBuf,
    der: Vec<u8>,
}

impl Pair {
    fn of(home: &Directory, name: &str, names: &[&str]) -> Self {
        let now = OffsetDateTime::now_utc();
        Self::held(
            home,
            name,
            names,
            (
                now - time::Duration::days(1),
                now + time::Duration::days(60),
            ),
        )
    }

    fn held(
        home: &Directory,
        name: &str,
        names: &[&str],
        (from, until): (OffsetDateTime, OffsetDateTime),
    ) -> Self {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        (params.not_before, params.not_after) = (from, until);
        let made = params.self_signed(&key).unwrap();
        let (cert, file) = (
            home.join(&format!("{name}.pem")),
            home.join(&format!("{name}.key")),
        );
        fs::write(&cert, made.pem()).unwrap();
        fs::write(&file, key.serialize_pem()).unwrap();
        Self {
            cert,
            key: file,
            der: made.der().to_vec(),
        }
    }

    fn arguments(&self) -> [&str; 6] {
        let (cert, key) = (self.cert.to_str().unwrap(), self.key.to_str().unwrap());
        ["cert", "install", "--cert", cert, "--key", key]
    }
}

fn gatewren() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.stdin(Stdio::null());
    command
}

/// Runs a command about the daemon with these settings.
fn by(settings: &Path, args: &[&str]) -> Output {
    let mut command = gatewren();
    command.args(args).arg("--config").arg(settings);
    command.output().unwrap()
}

fn why_not(settings: &Path, args: &[&str]) -> String {
    let output = by(settings, args);
    assert!(!output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns openssl's output.
fn openssl(line: &str, file: &Path) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", line, "sh"]).arg(file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the certificate that the server presents, whoever signed it.
fn shown(server: &Server) -> Vec<u8> {
    let line = format!(
        "openssl s_client -connect {} < /dev/null 2> /dev/null | openssl x509 -outform der",
        server.address()
    );
    let output = Command::new("sh").args(["-ec", &line]).output().unwrap();
    assert!(!output.stdout.is_empty(), "{output:?}");
    output.stdout
}

fn ca(server: &Server) -> PathBuf {
    server.text("ca").into()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

#[test]
fn show_says_what_openssl_says_and_what_the_server_shows() {
    let server = server().start();
    let directory = server.state_dir();
    let told = tell(&directory, &["cert", "show"]).0;
    assert_eq!(told["mode"], "own");
    assert!(strings(&told["holds_for"]).contains(&"localhost"));
    let left = told["days_left"].as_i64().unwrap();
    assert!((89..=90).contains(&left), "{told}");
    assert_eq!(told["server"]["shows"], "this", "{told}");
    assert_eq!(told["server"]["address"], json!(server.address()));
    assert!(
        told["box"]
            .as_array()
            .unwrap()
            .iter()
            .any(|name| name["covered"] == true),
        "{told}"
    );

    let print = |file: &Path| {
        let said = openssl("openssl x509 -in \"$1\" -noout -fingerprint -sha256", file);
        said.split_once('=').unwrap().1.to_owned()
    };
    let leaf = PathBuf::from(told["certificate"].as_str().unwrap());
    assert_eq!(told["sha256"], print(&leaf));
    assert_eq!(told["authority"]["sha256"], print(&ca(&server)));
    // Computed as in RFC 7469, for the authority's key: the server's own key changes every 60 days.
    let pin = "openssl x509 -in \"$1\" -pubkey -noout | openssl pkey -pubin -outform der \
               | openssl dgst -sha256 -binary | base64";
    let pin = format!("sha256/{}", openssl(pin, &ca(&server)));
    assert_eq!(told["pin"], pin);

    let said = words(&directory, &["cert", "show"]);
    for part in [
        &pin,
        "localhost",
        "days are left",
        "presents this certificate at",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The files now hold another certificate than the one that the server has loaded.
    let other = server_files(&crate::support::server::server().start());
    for (name, bytes) in other {
        fs::write(directory.join("tls").join(name), bytes).unwrap();
    }
    let told = tell(&directory, &["cert", "show"]).0;
    assert_eq!(told["server"]["shows"], "another", "{told}");
    assert!(words(&directory, &["cert", "show"]).contains("gatewren cert renew"));
}

fn server_files(server: &Server) -> Vec<(&'static str, Vec<u8>)> {
    let read = |name| {
        (
            name,
            fs::read(server.state_dir().join("tls").join(name)).unwrap(),
        )
    };
    ["key.pem", "cert.pem"].map(read).to_vec()
}

#[test]
fn renew_makes_a_new_one_and_closes_no_connection() {
    let mut server = server().start();
    let directory = server.state_dir();
    let authority = fs::read(ca(&server)).unwrap();
    for client in [server.client(), server.client().http2()] {
        let mut kept = client.connection();
        assert_eq!(client.modern("tools/list").send_over(&mut kept).status, 200);
        let session = client.session("2025-11-25");
        let mut stream = session.stream();
        let before = (client.certificate(), tell(&directory, &["cert", "show"]).0);
        let told = tell(&directory, &["cert", "renew"]).0;
        assert_eq!(told["server"]["shows"], "this", "{told}");
        let after = (client.certificate(), tell(&directory, &["cert", "show"]).0);
        assert_ne!(before.0, after.0);
        assert_ne!(before.1["sha256"], after.1["sha256"]);
        assert_eq!(before.1["pin"], after.1["pin"], "clients go on knowing it");
        assert_eq!(client.modern("tools/list").send_over(&mut kept).status, 200);
        assert!(!kept.is_closed());
        stream.stays_quiet(Duration::from_millis(100));
    }
    assert_eq!(fs::read(ca(&server)).unwrap(), authority);

    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended();
    let told = tell(&directory, &["cert", "renew"]).0;
    assert_eq!(
        (&told["made"], &told["server"]["running"]),
        (&json!(true), &json!(false))
    );
}

/// Without a gatewren installation, nothing is created.
#[test]
fn a_directory_of_nobodys_is_refused() {
    let home = Directory::new();
    let nothing = home.join("nothing");
    assert!(refused(&nothing, &["cert", "show"]).contains("start gatewren once"));
    assert!(refused(&home.0, &["cert", "renew"]).contains("start gatewren once"));
    assert!(!home.join("tls").exists());
    assert!(!nothing.exists());
}

#[test]
fn the_authority_is_written_in_each_form_and_each_system_has_its_line() {
    let server = server().start();
    let directory = server.state_dir();
    let form = |form: &str| {
        let mut command = gatewren();
        command.args(["cert", "trust", "--form", form, "--dir"]);
        let output = command.arg(&directory).output().unwrap();
        assert!(output.status.success(), "{form}: {output:?}");
        output.stdout
    };
    let home = Directory::new();
    let write = |name: &str, bytes: &[u8]| {
        let file = home.join(name);
        fs::write(&file, bytes).unwrap();
        file
    };
    let to_der = "openssl x509 -in \"$1\" -outform der | sha256sum";
    let ours = openssl(to_der, &ca(&server));
    assert_eq!(openssl(to_der, &write("pem", &form("pem"))), ours);
    assert_eq!(
        openssl("sha256sum < \"$1\"", &write("der", &form("der"))),
        ours
    );
    let profile = String::from_utf8(form("mobileconfig")).unwrap();
    assert!(profile.contains("com.apple.security.root"), "{profile}");

    let told = tell(&directory, &["cert", "trust"]).0;
    let systems = told["systems"].as_array().unwrap();
    let said = words(&directory, &["cert", "trust"]);
    for system in systems {
        let how = system["line"]
            .as_str()
            .or(system["words"].as_str())
            .unwrap();
        assert!(said.contains(how), "{system}");
        let key = system["system"].as_str().unwrap();
        let one = words(&directory, &["cert", "trust", key]);
        assert!(one.contains(how), "{one}");
        let lines = systems.iter().filter(|other| {
            let how = other["line"].as_str().or(other["words"].as_str()).unwrap();
            one.contains(how)
        });
        assert_eq!(lines.count(), 1, "{one}");
    }
    assert!(systems.len() >= 10);
}

#[test]
fn this_machine_trusts_it_and_no_more() {
    let Some(machine) = NetworkNamespace::new() else {
        return;
    };
    if !Path::new("/usr/sbin/update-ca-certificates").exists() {
        return crate::support::machine::skip("there is no update-ca-certificates");
    }
    machine.run("mkdir -p /usr/local/share/ca-certificates; mount -t tmpfs tmpfs /usr/local/share/ca-certificates");
    let server = server().in_namespace(&machine).start();
    let port = server.address().port();
    let asked = || {
        let mut curl = machine.inside("curl");
        let url = format!("https://localhost:{port}/health");
        curl.args([
            "-sS",
            "--noproxy",
            "*",
            "--max-time",
            "60",
            "-o",
            "/dev/null",
            &url,
        ]);
        curl.env_remove("SSL_CERT_FILE")
            .env_remove("CURL_CA_BUNDLE");
        curl.output().unwrap().status.code()
    };
    let trust = |option: &str| -> Value {
        let mut command = machine.inside(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["cert", "trust", option, "--json", "--dir"]);
        let output = command.arg(server.state_dir()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(asked(), Some(UNKNOWN_AUTHORITY));
    assert_eq!(trust("--install")["changed"], true);
    assert_eq!(asked(), Some(0));
    assert_eq!(trust("--install")["changed"], false, "it is there");
    assert_eq!(trust("--remove")["changed"], true);
    assert_eq!(asked(), Some(UNKNOWN_AUTHORITY));
    assert_eq!(trust("--remove")["changed"], false);
    let left = machine.run("ls /etc/ssl/certs | grep -c gatewren || true");
    assert_eq!(left, "0");
}

#[test]
fn one_of_the_owners_takes_its_place_while_clients_are_connected_and_goes_again() {
    let server = server().settings("").start();
    let (file, home) = (server.settings_file(), Directory::new());
    let client = server.client();
    let own = client.certificate();
    let mut kept = client.connection();
    let list = client.modern("tools/list");
    assert_eq!(list.send_over(&mut kept).status, 200);
    let by_name = list.clone().host("box.example.org");
    assert_eq!(by_name.send_over(&mut kept).status, 421);

    let pair = Pair::of(&home, "box", &["box.example.org"]);
    let told = tell_by(&file, &pair.arguments());
    assert_eq!(
        (&told["changed"], &told["server"]["shows"]),
        (&json!(true), &json!("this")),
        "{told}"
    );
    assert!(
        told["warning"]
            .as_str()
            .unwrap()
            .contains("box.example.org")
    );
    assert_eq!(shown(&server), pair.der);
    assert_eq!(list.send_over(&mut kept).status, 200, "it is not closed");
    assert_eq!(
        by_name.send_over(&mut kept).status,
        200,
        "that name is this server's"
    );
    let installed = server.state_dir().join("tls/installed.pem");
    let facts = fs::metadata(&installed).unwrap();
    assert_eq!(facts.mode() & 0o7777, 0o600);
    assert!(by(&file, &["check"]).status.success());
    let told = tell_by(&file, &["cert", "show"]);
    assert_eq!(
        (&told["mode"], &told["server"]["shows"]),
        (&json!("files"), &json!("this"))
    );
    assert!(why_not(&file, &["cert", "trust"]).contains("the certificate is the owner's"));

    // Installing the same certificate again writes nothing.
    assert_eq!(tell_by(&file, &pair.arguments())["changed"], false);
    assert_eq!(fs::metadata(&installed).unwrap().ino(), facts.ino());
    // As an ACME client renews it.
    let next = Pair::of(&home, "next", &["box.example.org", "nas.example.org"]);
    assert_eq!(tell_by(&file, &next.arguments())["changed"], true);
    assert_eq!(shown(&server), next.der);
    assert_eq!(list.send_over(&mut kept).status, 200);

    let told = tell_by(&file, &["cert", "install", "--remove"]);
    assert_eq!(told["changed"], true);
    assert_eq!(
        client.certificate(),
        own,
        "and clients that trusted it before still do"
    );
    assert!(!installed.exists());
    assert_eq!(by_name.send_over(&mut kept).status, 421);
    assert_eq!(
        tell_by(&file, &["cert", "install", "--remove"])["changed"],
        false
    );
    assert!(!kept.is_closed());
}

#[test]
fn what_cannot_serve_is_not_installed() {
    let server = server().settings("").start();
    let (file, home) = (server.settings_file(), Directory::new());
    let own = server.client().certificate();
    let (now, day) = (OffsetDateTime::now_utc(), time::Duration::days(1));
    let good = Pair::of(&home, "good", &["box.example.org"]);
    let other = Pair::of(&home, "other", &["box.example.org"]);
    let over = Pair::held(
        &home,
        "over",
        &["box.example.org"],
        (now - day * 9, now - day),
    );
    let early = Pair::held(
        &home,
        "early",
        &["box.example.org"],
        (now + day, now + day * 9),
    );
    let mixed = Pair {
        key: other.key.clone(),
        cert: good.cert.clone(),
        der: Vec::new(),
    };
    let none = Pair {
        key: good.key.clone(),
        cert: home.join("none.pem"),
        der: Vec::new(),
    };
    let turned = Pair {
        key: good.cert.clone(),
        cert: good.key.clone(),
        der: Vec::new(),
    };
    for (pair, words) in [
        (&over, "it has expired; nothing was changed"),
        (&early, "is not valid yet"),
        (&mixed, "does not match the certificate"),
        (&none, "does not exist"),
        (&turned, "found no certificate in"),
    ] {
        let said = why_not(&file, &pair.arguments());
        assert!(said.contains(words), "{words}: {said}");
        // No error message contains a secret.
        assert!(!said.contains("PRIVATE KEY-----\n"), "{said}");
    }
    assert!(why_not(&file, &["cert", "install"]).contains("--hook"));
    assert!(!file.with_file_name("conf.d").exists());
    assert!(!server.state_dir().join("tls/installed.pem").exists());
    assert_eq!(server.client().certificate(), own);
}

#[test]
fn settings_that_say_another_thing_are_left_to_their_owner() {
    let server = server().settings("").start();
    let (file, home) = (server.settings_file(), Directory::new());
    let own = server.client().certificate();
    let good = Pair::of(&home, "good", &["box.example.org"]);
    let on = file.with_file_name("conf.d/cert-installed.toml");
    // A trial has no settings file.
    let said = refused(&server.state_dir(), &good.arguments());
    assert!(
        said.contains("give a settings file with --config"),
        "{said}"
    );
    server.write_settings("[tls]\nmode = \"own\"\n");
    let said = why_not(&file, &good.arguments());
    assert!(said.contains("sets tls.mode = \"own\""), "{said}");
    server.write_settings("");
    fs::create_dir_all(on.parent().unwrap()).unwrap();
    let beside = on.with_file_name("mine.toml");
    fs::write(
        &beside,
        "[tls]\nmode = \"files\"\ncert = \"/c\"\nkey = \"/k\"\n",
    )
    .unwrap();
    let said = why_not(&file, &good.arguments());
    assert!(said.contains("mine.toml sets tls.cert"), "{said}");
    fs::write(&beside, "[tls\n").unwrap();
    assert!(why_not(&file, &good.arguments()).contains("mine.toml"));
    fs::remove_file(&beside).unwrap();
    assert!(!on.exists());
    assert_eq!(server.client().certificate(), own);
    assert_eq!(tell_by(&file, &good.arguments())["changed"], true);
}

#[test]
fn as_the_hook_of_an_acme_client_it_takes_what_was_made() {
    let server = server().settings("").start();
    let (file, home) = (server.settings_file(), Directory::new());
    let hook = |variables: &[(&str, &Path)]| {
        let mut command = gatewren();
        command
            .args(["cert", "install", "--hook", "--config"])
            .arg(&file);
        for name in [
            "RENEWED_LINEAGE",
            "LEGO_CERT_PATH",
            "LEGO_HOOK_CERT_PATH",
            "CERT_FULLCHAIN_PATH",
        ] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    let (good, said) = hook(&[]);
    assert!(!good && said.contains("RENEWED_LINEAGE"), "{said}");
    // certbot: links in a directory of the lineage.
    let lineage = home.join("live");
    fs::create_dir(&lineage).unwrap();
    let one = Pair::of(&home, "one", &["box.example.org"]);
    std::os::unix::fs::symlink(&one.cert, lineage.join("fullchain.pem")).unwrap();
    std::os::unix::fs::symlink(&one.key, lineage.join("privkey.pem")).unwrap();
    let (good, said) = hook(&[("RENEWED_LINEAGE", &lineage)]);
    assert!(good, "{said}");
    assert_eq!(shown(&server), one.der);

    for (cert, key) in [
        ("LEGO_CERT_PATH", "LEGO_CERT_KEY_PATH"),
        ("LEGO_HOOK_CERT_PATH", "LEGO_HOOK_CERT_KEY_PATH"),
        ("CERT_FULLCHAIN_PATH", "CERT_KEY_PATH"),
    ] {
        let next = Pair::of(&home, cert, &["box.example.org"]);
        let (good, said) = hook(&[(cert, &next.cert), (key, &next.key)]);
        assert!(good, "{said}");
        assert_eq!(shown(&server), next.der, "{cert}");
    }

    // A hook for all certificates of a machine also runs for those of other programs.
    let before = shown(&server);
    let mail = Pair::of(&home, "mail", &["mail.example.org"]);
    let variables = [
        ("LEGO_CERT_PATH", mail.cert.as_path()),
        ("LEGO_CERT_KEY_PATH", mail.key.as_path()),
    ];
    let (good, said) = hook(&variables);
    assert!(good && said.contains("nothing was changed"), "{said}");
    assert_eq!(shown(&server), before);
    // Without the hook, the owner may install any certificate.
    tell_by(&file, &mail.arguments());
    assert_eq!(shown(&server), mail.der);
}

#[test]
fn a_key_that_others_may_read_is_private_where_it_is_installed() {
    let server = server().settings("").start();
    let home = Directory::new();
    let pair = Pair::of(&home, "box", &["*.home.example.org"]);
    fs::set_permissions(&pair.key, Permissions::from_mode(0o644)).unwrap();
    let told = tell_by(&server.settings_file(), &pair.arguments());
    // Only the owner knows which names below a wildcard belong to this host.
    assert!(told["warning"].as_str().unwrap().contains("421"), "{told}");
    let installed = server.state_dir().join("tls/installed.pem");
    assert_eq!(fs::metadata(installed).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(told["holds_for"], json!(["*.home.example.org"]));
}

/// THE PROGRAM `tailscale` IS A STAND-IN HERE: a test machine is not signed in to a tailnet. The test shows only how
/// it is called, and that its output is served.
#[test]
fn what_a_stand_in_for_tailscale_prints_is_installed() {
    let server = server().settings("").start();
    let home = Directory::new();
    let pair = Pair::of(&home, "box", &["box.tail1.ts.net"]);
    let program = home.join("tailscale");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {asked}\ncase $1 in\n\
         status) echo '{{\"Self\":{{\"DNSName\":\"box.tail1.ts.net.\"}},\"CertDomains\":[\"box.tail1.ts.net\"]}}' ;;\n\
         cert) [ \"$4\" = box.tail1.ts.net ] || {{ echo \"invalid domain $4\" >&2; exit 1; }}\n cat {cert} {key} ;;\nesac\n",
        asked = home.join("asked").display(),
        cert = pair.cert.display(),
        key = pair.key.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let run = |path: &str, more: &[&str]| {
        let mut command = gatewren();
        command.args(["cert", "tailscale", "--config"]);
        command.arg(server.settings_file()).args(more);
        command.env("PATH", path).output().unwrap()
    };
    let path = format!("{}:/usr/bin:/bin", home.0.display());
    let output = run(&path, &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(shown(&server), pair.der);
    let asked = fs::read_to_string(home.join("asked")).unwrap();
    assert_eq!(
        asked,
        "status --json\ncert --cert-file=- --key-file=- box.tail1.ts.net\n"
    );
    // As the timer runs it each day: nothing has changed.
    let again = String::from_utf8(run(&path, &[]).stdout).unwrap();
    assert!(again.contains("is already installed"), "{again}");
    let output = run(&path, &["--name", "other.ts.net"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("tailscale cert: invalid domain other.ts.net"),
        "{said}"
    );
    let said = String::from_utf8(run("/nonexistent", &[]).stderr).unwrap();
    assert!(said.contains("tailscale was not found"), "{said}");
}

/// A real address on a real interface, in a separate network namespace.
#[test]
fn an_address_that_comes_is_in_the_certificate_within_a_minute() {
    let Some(machine) = NetworkNamespace::new() else {
        return;
    };
    let server = server().in_namespace(&machine).start();
    let client = server.client();
    let mut kept = {
        let socket = machine.within(|| TcpStream::connect(client.address).unwrap());
        client.raw_over(socket)
    };
    let mut healthy = || {
        kept.say(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        kept.answer().0
    };
    assert_eq!(healthy(), 200);
    let shown = |address: &str| {
        let line = format!(
            "openssl s_client -connect {} </dev/null 2>/dev/null | openssl x509 -noout -checkip {address}",
            client.address
        );
        machine.run(&line).contains("does match")
    };
    machine.run(
        "ip link add home0 type veth peer name home1; ip link set home0 up; ip link set home1 up",
    );
    for address in ["192.168.77.5", "10.20.30.40"] {
        assert!(!shown(address));
        let since = Instant::now();
        machine.run(&format!("ip addr add {address}/24 dev home0"));
        wait_until(address, A_MINUTE, || shown(address));
        eprintln!("{address}: in the certificate after {:?}", since.elapsed());
        assert_eq!(healthy(), 200, "what was connected still is");
    }
    let mut told = machine.inside(env!("CARGO_BIN_EXE_gatewren"));
    told.args(["cert", "show", "--json", "--dir"])
        .arg(server.state_dir());
    let told: Value = serde_json::from_slice(&told.output().unwrap().stdout).unwrap();
    assert_eq!(told["server"]["shows"], "this");
    let names = told["box"].as_array().unwrap();
    assert!(
        names.contains(&json!({ "name": "10.20.30.40", "covered": true })),
        "{told}"
    );
}
