//! `required_header_value_file`: the header of a proxy must have the value in a file that other users cannot read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::server::{Directory, server};

fn put(file: &Path, text: &str, mode: u32) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_value_of_the_file_is_required_and_read_again_at_a_reload() {
    let home = Directory::new();
    let file = home.0.join("value");
    put(&file, "Hush-first\n", 0o640);
    let settings = format!(
        "[access]\nrequired_header = \"X-Gate\"\nrequired_header_value_file = \"{}\"\n",
        file.display()
    );
    let server = server().policy("observe").settings(&settings).start();
    for (way, client) in server.clients() {
        put(&file, "Hush-first\n", 0o640);
        server.reload_with(&settings);
        let list = client.modern("tools/list");
        let status = |value: &str| list.clone().header("x-gate", value).send().status;
        assert_eq!(status("Hush-first"), 200, "{way}");
        for wrong in ["", "1", "Hush-firs", "Hush-first1", "hush-first"] {
            let refused = list.clone().header("x-gate", wrong).send();
            assert_eq!(refused.status, 403, "{way}: {wrong}");
            assert_eq!(refused.json()["error"], "header_required", "{way}");
            assert!(!refused.body.contains("Hush"), "{way}: {refused:?}");
        }
        let twice = list.clone().header("x-gate", "Hush-first");
        let twice = twice.also("x-gate", b"Hush-first").send();
        assert_eq!(twice.status, 403, "{way}: a proxy and a client");
        assert_eq!(list.send().status, 403, "{way}: without it");

        put(&file, "Hush-second", 0o640);
        assert_eq!(status("Hush-first"), 200, "{way}: not reloaded yet");
        server.reload_with(&settings);
        assert_eq!([status("Hush-first"), status("Hush-second")], [403, 200]);

        // A file that others can read changes nothing.
        put(&file, "Hush-third", 0o644);
        server.write_settings(&settings);
        let said = server.reload();
        assert!(said.contains("not reloaded"), "{way}: {said}");
        assert!(said.contains("chmod 640"), "{way}: {said}");
        assert_eq!([status("Hush-third"), status("Hush-second")], [403, 200]);
        let mut check = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        let checked = check
            .args(["check", "--config"])
            .arg(server.settings_file());
        let checked = checked.output().unwrap();
        let words = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(2), "{way}: {words}");
        assert!(words.contains("chmod 640"), "{way}: {words}");

        // Without the file any value will do, and without the header none is needed.
        server.reload_with("[access]\nrequired_header = \"X-Gate\"\n");
        assert_eq!([status("1"), list.send().status], [200, 403], "{way}");
        server.reload_with("");
        assert_eq!(list.send().status, 200, "{way}");
    }
    assert!(!server.log().contains("Hush"), "{}", server.log());
}

#[test]
fn a_header_with_underscores_is_another_header() {
    let settings = "[access]\nrequired_header = \"X-Gate\"\n";
    let server = server().policy("observe").settings(settings).start();
    for (way, client) in server.clients() {
        let list = client.modern("tools/list");
        let status = |header: &str| list.clone().header(header, "1").send().status;
        assert_eq!([status("x-gate"), status("x_gate")], [200, 403], "{way}");
        // Beside the right one it changes nothing.
        let both = list.clone().header("x-gate", "1");
        let both = both.also("mcp_protocol_version", b"2099-01-01");
        let both = both.also("host_", b"evil.example").send();
        assert_eq!(both.status, 200, "{way}: {both:?}");
        let token = client.token.clone();
        let other = list.clone().header("x-gate", "1").without("authorization");
        let other = other.also("authorization_", format!("Bearer {token}").as_bytes());
        assert_eq!(other.send().status, 401, "{way}");
    }
}
