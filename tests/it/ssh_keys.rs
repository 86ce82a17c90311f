//! SSH keys: gatewren's own block among the owner's lines, which stay unchanged with any input.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::add_agent;
use crate::support::machine::{IN_TIME, is_root, skip, wait_until};
use crate::support::server::{Directory, Server, server};

/// A host with the key files of two accounts, in separate directories, and an agent that needs no confirmation.
struct Home {
    _server: Server,
    client: Client,
    files: Directory,
}

impl Home {
    /// Returns `None` without root or without ssh-keygen.
    fn new() -> Option<Self> {
        if !is_root() {
            skip("only root changes who may log in");
            return None;
        }
        if Command::new("ssh-keygen").arg("-?").output().is_err() {
            skip("ssh-keygen is not installed (apt install openssh-client)");
            return None;
        }
        let files = Directory::new();
        for who in ["one", "two"] {
            fs::create_dir(files.join(who)).unwrap();
            fs::set_permissions(files.join(who), Permissions::from_mode(0o700)).unwrap();
        }
        let path = |who: &str| files.join(who).join("keys").display().to_string();
        let bounds = format!("ssh_keys = [\"{}\", \"{}\"]\n", path("one"), path("two"));
        let server = server()
            .policy("admin")
            .settings("")
            .bounds(&bounds)
            .start();
        let options = ["--policy", "admin", "--mode", "persist=allow"];
        let agent = add_agent(&server.state_dir(), "keeper", &options);
        let client = server.client().with_token(agent["token"].as_str().unwrap());
        wait_until("it comes in, and the helper is heard", IN_TIME, || {
            let answer = client.modern("tools/list").send();
            answer.status == 200 && answer.names("tools").contains(&"ssh_key_add".to_owned())
        });
        Some(Self {
            _server: server,
            client,
            files,
        })
    }

    fn path(&self, who: &str) -> String {
        self.files.join(who).join("keys").display().to_string()
    }

    fn write(&self, who: &str, text: &str) {
        fs::write(self.path(who), text).unwrap();
        fs::set_permissions(self.path(who), Permissions::from_mode(0o600)).unwrap();
    }

    fn text(&self, who: &str) -> String {
        fs::read_to_string(self.path(who)).unwrap()
    }

    /// Makes a new key of this type; returns its line in the file, and its fingerprint as ssh-keygen prints it.
    fn make(&self, kind: &str, comment: &str) -> (String, String) {
        let file = self.files.join(&format!("{kind}-{}", comment.len()));
        let file = file.to_str().unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", "", "-C", comment, "-f", file])
            .output();
        assert!(made.unwrap().status.success(), "{kind}");
        let public = format!("{file}.pub");
        (
            fs::read_to_string(&public).unwrap(),
            fingerprints(&public)[0].clone(),
        )
    }

    fn add(&self, who: &str, key: &str) -> Value {
        let given = json!({ "account": self.path(who), "key": key });
        self.client.call("ssh_key_add", given).send().result()
    }

    fn remove(&self, who: &str, fingerprint: &str) -> Value {
        let given = json!({ "account": self.path(who), "fingerprint": fingerprint });
        self.client.call("ssh_key_remove", given).send().result()
    }

    fn listed(&self, who: &str) -> Value {
        let listed = self.client.call("ssh_key_list", json!({})).send().data();
        let accounts = listed["accounts"].as_array().unwrap().clone();
        let mut found = accounts.into_iter();
        found.find(|one| one["account"] == self.path(who)).unwrap()
    }

    fn refused(&self, who: &str, key: &str) -> String {
        let result = self.add(who, key);
        assert_eq!(result["isError"], true, "{key}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// Returns the fingerprints that ssh-keygen finds in a file of keys.
fn fingerprints(file: &str) -> Vec<String> {
    let said = Command::new("ssh-keygen").args(["-l", "-f", file]).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let words = said.lines().map(|line| line.split(' ').nth(1).unwrap());
    words.map(str::to_owned).collect()
}

fn changed(result: &Value) -> bool {
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["changed"].as_bool().unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario, in order")]
fn keys_come_and_go_in_a_block_and_foreign_lines_stay_byte_for_byte() {
    let Some(home) = Home::new() else { return };
    let (owners, owners_print) = home.make("ed25519", "the owner");
    let (bound, bound_print) = home.make("ecdsa", "bound");
    // Without a line feed at its end, with blanks, and with a line that is not a key.
    let foreign = format!(
        "# mine\r\n\n{owners}\tfrom=\"192.0.2.*,!\\\"x y\\\"\",command=\"echo hi there\" {bound}what is this\n\
         restrict {}",
        owners.trim_end()
    );
    home.write("one", &foreign);
    fs::set_permissions(home.path("one"), Permissions::from_mode(0o640)).unwrap();
    chown(home.path("one"), Some(0), Some(7)).unwrap();

    let mut added = Vec::new();
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let (key, print) = home.make(kind, "an agent's");
        let result = home.add("one", &key);
        assert!(changed(&result));
        assert_eq!(result["structuredContent"]["fingerprint"], print);
        assert!(!changed(&home.add("one", &key)), "once is enough");
        added.push(print);
    }
    assert!(
        !changed(&home.add("one", &bound)),
        "it would be freed of what bounds it"
    );
    assert!(
        home.text("one")
            .starts_with(&format!("{foreign}\n# BEGIN gatewren"))
    );
    let facts = fs::metadata(home.path("one")).unwrap();
    assert_eq!(
        (facts.mode() & 0o777, facts.uid(), facts.gid()),
        (0o640, 0, 7)
    );
    let seen = fingerprints(&home.path("one"));
    for print in added.iter().chain([&owners_print, &bound_print]) {
        assert!(seen.contains(print), "sshd reads {print}: {seen:?}");
    }

    let listed = home.listed("one");
    let shown = |key: &Value| {
        let fingerprint = key["fingerprint"].as_str().unwrap().to_owned();
        (
            fingerprint,
            key["managed"].clone(),
            key["has_options"].clone(),
        )
    };
    let shown: Vec<_> = listed["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(shown)
        .collect();
    let mut expected = vec![
        (owners_print.clone(), json!(false), json!(false)),
        (bound_print, json!(false), json!(true)),
        (owners_print.clone(), json!(false), json!(true)),
    ];
    expected.extend(
        added
            .iter()
            .map(|print| (print.clone(), json!(true), json!(false))),
    );
    assert_eq!(shown, expected);
    assert_eq!(listed["unreadable_lines"], 1);
    assert_eq!(listed["keys"][0]["comment"], "the owner");

    // The owner's lines after the block stay as well.
    let mut behind = home.text("one");
    behind.push_str("# last, no line feed");
    home.write("one", &behind);
    let refused = home.remove("one", &owners_print);
    assert!(refused.to_string().contains("only the owner"), "{refused}");
    for print in &added {
        assert!(changed(&home.remove("one", print)));
    }
    assert_eq!(home.text("one"), format!("{foreign}\n# last, no line feed"));
    let gone = home.remove("one", &added[0]);
    assert_eq!(gone["isError"], true);
    assert!(
        !fs::exists(home.path("two")).unwrap(),
        "the other's is not touched"
    );
    assert!(changed(&home.add("two", &owners)));
    assert_eq!(
        fs::metadata(home.path("two")).unwrap().mode() & 0o777,
        0o600
    );
    let left = fs::read_dir(home.files.join("one")).unwrap().count();
    assert_eq!(left, 1, "nothing passing is left behind");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario, in order")]
fn what_is_no_plain_key_and_what_others_could_have_written_is_refused() {
    let Some(home) = Home::new() else { return };
    let (key, print) = home.make("ed25519", "k");
    let key = key.trim_end();
    home.write("one", "# mine\n");
    for bad in [
        format!("command=\"id\" {key}"),
        format!("{key}\n{key}"),
        format!("{key}\nssh-rsa AAAA"),
        format!("{key}\r# END gatewren"),
        format!("{key} \u{1b}[2J"),
        key.replace("ssh-ed25519", "ssh-rsa"),
        "no-pty ssh-ed25519 AAAA".to_owned(),
        "/etc/shadow".to_owned(),
    ] {
        let words = home.refused("one", &bad);
        assert!(words.contains("key"), "{bad:?}: {words}");
    }
    assert_eq!(home.text("one"), "# mine\n");
    let elsewhere = json!({ "account": "/etc/passwd", "key": key });
    let elsewhere = home.client.call("ssh_key_add", elsewhere).send().result();
    assert!(
        elsewhere.to_string().contains("only the owner"),
        "{elsewhere}"
    );
    let unsaid = home
        .client
        .call("ssh_key_add", json!({ "key": key }))
        .send()
        .result();
    assert_eq!(unsaid["isError"], true, "there are two accounts");

    // A damaged block may contain lines of the owner.
    for damaged in [
        "# BEGIN gatewren: keys that were added through it\n# mine\n",
        "# END gatewren\n# BEGIN gatewren: keys that were added through it\n",
    ] {
        home.write("one", damaged);
        assert!(home.refused("one", key).contains("one pair"));
        assert_eq!(home.text("one"), damaged);
    }

    // A link leads to another file.
    let target = home.files.join("target");
    fs::write(&target, format!("{key}\n")).unwrap();
    fs::remove_file(home.path("one")).unwrap();
    symlink(&target, home.path("one")).unwrap();
    home.refused("one", key);
    assert_eq!(home.listed("one")["keys"], json!([]));
    assert!(home.listed("one")["problem"].is_string());
    assert!(fs::symlink_metadata(home.path("one")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), format!("{key}\n"));
    fs::remove_file(home.path("one")).unwrap();

    // Another user's file in root's directory, and files that others may write.
    home.write("one", "# theirs\n");
    chown(home.path("one"), Some(12_345), None).unwrap();
    home.refused("one", key);
    chown(home.path("one"), Some(0), None).unwrap();
    fs::set_permissions(home.path("one"), Permissions::from_mode(0o666)).unwrap();
    home.refused("one", key);
    fs::set_permissions(home.path("one"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(home.files.join("one"), Permissions::from_mode(0o777)).unwrap();
    home.refused("one", key);
    fs::set_permissions(home.files.join("one"), Permissions::from_mode(0o700)).unwrap();
    assert!(changed(&home.add("one", key)));
    // A file that is too large, and a pipe, where a reader would block.
    fs::write(home.path("one"), "# x\n".repeat(100_000)).unwrap();
    home.refused("one", key);
    fs::remove_file(home.path("one")).unwrap();
    nix::unistd::mkfifo(home.path("one").as_str(), nix::sys::stat::Mode::S_IRUSR).unwrap();
    home.refused("one", key);
    let refused = home.remove("one", &print);
    assert_eq!(refused["isError"], true);
}
