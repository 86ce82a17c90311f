//! The host's files: only below the directories that the owner names.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::add_agent;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// A host whose owner allows reading `open` and writing `open/own`, and an agent that needs no confirmation.
struct Home {
    server: Server,
    client: Client,
    files: Directory,
}

impl Home {
    fn new() -> Self {
        let files = Directory::new();
        fs::create_dir_all(files.join("open/own")).unwrap();
        fs::create_dir_all(files.join("open/deep/er")).unwrap();
        fs::write(files.join("secret"), "hidden\n").unwrap();
        fs::write(files.join("open/a.conf"), "one\ntwo = 2\n").unwrap();
        fs::write(files.join("open/deep/b.conf"), "two = 3\n").unwrap();
        fs::write(files.join("open/deep/er/c.bin"), b"two\0\xff").unwrap();
        let open = files.join("open");
        let (open, own) = (open.display(), files.join("open/own"));
        let bounds = format!(
            "host_file_reads = [\"{open}\"]\nhost_file_writes = [\"{}\"]\n",
            own.display()
        );
        let server = server()
            .policy("admin")
            .settings("")
            .bounds(&bounds)
            .start();
        let modes = ["--mode", "reveal=allow", "--mode", "persist=allow"];
        let options = [&["--policy", "admin"][..], &modes].concat();
        let agent = add_agent(&server.state_dir(), "reader", &options);
        let client = server.client().with_token(agent["token"].as_str().unwrap());
        let list = client.modern("tools/list");
        wait_until("it comes in, and the helper is heard", IN_TIME, || {
            let answer = list.send();
            answer.status == 200 && answer.names("tools").contains(&"file_write".to_owned())
        });
        Self {
            server,
            client,
            files,
        }
    }

    fn path(&self, name: &str) -> String {
        self.files.join(name).to_str().unwrap().to_owned()
    }

    /// Calls a tool with a path and more arguments.
    fn data(&self, tool: &str, path: &str, more: &Value) -> Value {
        self.client
            .call(tool, with(&self.path(path), more))
            .send()
            .data()
    }

    /// Returns the error of a call with a path.
    fn failure(&self, tool: &str, path: &str, more: &Value) -> String {
        let call = self.client.call(tool, with(path, more));
        call.send().failure()
    }
}

fn with(path: &str, more: &Value) -> Value {
    let mut arguments = json!({ "path": path });
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

fn names(list: &Value, key: &str, of: &str) -> Vec<String> {
    let entries = list[key].as_array().unwrap().iter();
    entries
        .map(|one| one[of].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_directory_is_listed_in_parts() {
    let home = Home::new();
    let roots = home.client.call("file_list", json!({})).send().data();
    assert_eq!(names(&roots, "entries", "name"), [home.path("open")]);
    fs::set_permissions(home.path("open/a.conf"), Permissions::from_mode(0o640)).unwrap();
    symlink("a.conf", home.path("open/link")).unwrap();
    let _socket = UnixListener::bind(home.path("open/socket")).unwrap();
    let list = home.data("file_list", "open", &json!({ "limit": 3 }));
    assert_eq!(names(&list, "entries", "name"), ["a.conf", "deep", "link"]);
    assert_eq!(
        names(&list, "entries", "kind"),
        ["file", "directory", "link"]
    );
    let entry = &list["entries"][0];
    assert_eq!(
        (&entry["size_bytes"], &entry["mode"]),
        (&json!(12), &json!("0640"))
    );
    assert_eq!(
        (&list["total"], &list["next_offset"]),
        (&json!(5), &json!(3))
    );
    let rest = home.data("file_list", "open", &json!({ "offset": 3, "limit": 3 }));
    assert_eq!(names(&rest, "entries", "kind"), ["directory", "other"]);
    assert!(rest.get("next_offset").is_none(), "{rest}");
    let no = home.failure("file_list", &home.path("open/a.conf"), &json!({}));
    assert!(no.contains("is not a directory"), "{no}");
}

#[test]
fn files_are_found_by_name_and_by_text() {
    let home = Home::new();
    symlink(home.path(""), home.path("open/deep/out")).unwrap();
    let find = |more: Value| home.data("file_search", "open", &more);
    let by_name = find(json!({ "name": "*.conf" }));
    let paths = [home.path("open/a.conf"), home.path("open/deep/b.conf")];
    assert_eq!(names(&by_name, "matches", "path"), paths);
    assert_eq!(by_name["truncated"], false);
    let by_text = find(json!({ "text": "two" }));
    let first = &by_text["matches"][0];
    assert_eq!(
        (&first["line_number"], &first["line"]),
        (&json!(2), &json!("two = 2"))
    );
    assert_eq!(by_text["matches"].as_array().unwrap().len(), 3, "{by_text}");
    let by_both = find(json!({ "name": "b*", "text": "two" }));
    assert_eq!(names(&by_both, "matches", "path"), paths[1..]);
    let short = find(json!({ "name": "*", "limit": 1 }));
    assert_eq!(short["truncated"], true);
    // A match exists only behind the link, which the search does not follow.
    assert_eq!(find(json!({ "name": "secret" }))["matches"], json!([]));
    let no = home.failure("file_search", &home.path("open"), &json!({}));
    assert!(no.contains("a name or a text"), "{no}");
}

#[test]
fn a_file_is_read_in_parts_and_bytes_come_as_base64() {
    let home = Home::new();
    let all = home.data("file_read", "open/a.conf", &json!({}));
    assert_eq!(
        (&all["text"], &all["size_bytes"]),
        (&json!("one\ntwo = 2\n"), &json!(12))
    );
    assert!(all.get("next_offset").is_none(), "{all}");
    let part = home.data(
        "file_read",
        "open/a.conf",
        &json!({ "offset": 4, "limit": 3 }),
    );
    assert_eq!(
        (&part["text"], &part["next_offset"]),
        (&json!("two"), &json!(7))
    );
    let bytes = home.data("file_read", "open/deep/er/c.bin", &json!({}));
    assert_eq!(bytes["base64"], "dHdvAP8=");
    symlink("a.conf", home.path("open/link")).unwrap();
    let led = home.data("file_read", "open/link", &json!({}));
    assert_eq!(led["path"], all["path"], "a link within is followed");
}

#[test]
fn nothing_beyond_the_named_directories_is_reached() {
    let home = Home::new();
    symlink("../secret", home.path("open/up")).unwrap();
    symlink(home.path("secret"), home.path("open/absolute")).unwrap();
    symlink("/proc/self/root", home.path("open/magic")).unwrap();
    symlink("..", home.path("open/parent")).unwrap();
    let nothing = json!({});
    for (path, said) in [
        (
            home.path("secret"),
            "not in a directory that host_file_reads",
        ),
        (
            "/etc/shadow".to_owned(),
            "not in a directory that host_file_reads",
        ),
        (
            home.path("opener"),
            "not in a directory that host_file_reads",
        ),
        (
            home.path("open/../secret"),
            "must be absolute and without ..",
        ),
        ("open/a.conf".to_owned(), "must be absolute and without .."),
        (home.path("open/a\0b"), "must be absolute and without .."),
        (home.path("open/up"), "leads out of the directory"),
        (home.path("open/absolute"), "leads out of the directory"),
        (
            home.path("open/parent/secret"),
            "leads out of the directory",
        ),
        (
            home.path("open/magic/etc/hostname"),
            "leads out of the directory",
        ),
        (
            "/etc/gatewren/gatewren.toml".to_owned(),
            "no agent has access",
        ),
        ("/proc/self/environ".to_owned(), "no agent has access"),
        (home.path("open/none"), "does not exist"),
    ] {
        let refused = home.failure("file_read", &path, &nothing);
        assert!(refused.contains(said), "{path:?}: {refused}");
    }
}

#[test]
fn a_pipe_is_not_opened_and_what_may_be_read_may_not_be_written() {
    let home = Home::new();
    let nothing = json!({});
    let pipe = home.path("open/pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let refused = home.failure("file_read", &pipe, &nothing);
    assert!(refused.contains("is not a regular file"), "{refused}");
    // Readable, but not writable.
    let text = json!({ "text": "x" });
    let refused = home.failure("file_write", &home.path("open/a.conf"), &text);
    assert!(refused.contains("that host_file_writes in "), "{refused}");
}

#[test]
fn what_is_kept_from_everybody_is_so_below_the_root_directory_too() {
    let home = Home::new();
    let lxcpath = home.server.state_dir().join("lxc");
    let everything = "host_file_reads = [\"/\"]\n";
    let server = server()
        .policy("admin")
        .settings(&format!("[lxc]\nlxcpath = \"{}\"\n", lxcpath.display()))
        .bounds(everything)
        .start();
    fs::create_dir_all(lxcpath.join("web")).unwrap();
    fs::write(lxcpath.join("web/config"), "").unwrap();
    let modes = ["--policy", "admin", "--mode", "reveal=allow"];
    let agent = add_agent(&server.state_dir(), "reader", &modes);
    let client = server.client().with_token(agent["token"].as_str().unwrap());
    let read = |path: &Path| {
        let path = path.to_str().unwrap();
        client.call("file_read", json!({ "path": path })).send()
    };
    let mark = home.files.join("secret");
    wait_until("the agent comes in", IN_TIME, || {
        let answer = read(&mark);
        answer.status == 200 && answer.result()["isError"] == false
    });
    assert_eq!(read(&mark).data()["text"], "hidden\n");
    for kept in [
        lxcpath.join("web/config").as_path(),
        &lxcpath.join("none/config"),
        Path::new("/dev/null"),
        Path::new("/sys/kernel/notes"),
    ] {
        let refused = read(kept).failure();
        assert!(
            refused.contains("no agent has access"),
            "{kept:?}: {refused}"
        );
    }
}

#[test]
fn a_write_keeps_the_old_version_the_owner_and_the_permissions() {
    let home = Home::new();
    let write =
        |name: &str, more: Value| home.data("file_write", &format!("open/own/{name}"), &more);
    let path = home.path("open/own/f");
    let written = write("f", json!({ "text": "first\n" }));
    assert_eq!(
        (&written["path"], &written["size_bytes"]),
        (&json!(path), &json!(6))
    );
    assert!(written.get("old_version").is_none(), "{written}");
    let mode = |path: &str| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&path), 0o644);
    fs::set_permissions(&path, Permissions::from_mode(0o4750)).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), Some(12_346)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o4750)).unwrap();
    }
    let owner = fs::metadata(&path).unwrap().uid();
    let written = write("f", json!({ "base64": "AP8=" }));
    let old = format!("{path}~");
    assert_eq!(written["old_version"], json!(old));
    assert_eq!(fs::read(&path).unwrap(), b"\0\xff");
    assert_eq!(fs::read_to_string(&old).unwrap(), "first\n");
    assert_eq!(
        (mode(&path), fs::metadata(&path).unwrap().uid()),
        (0o750, owner)
    );
    write("f", json!({ "text": "third" }));
    assert_eq!(
        fs::read(&old).unwrap(),
        b"\0\xff",
        "one old version is kept"
    );
    let left = fs::read_dir(home.path("open/own")).unwrap().count();
    assert_eq!(left, 2, "nothing passing is left behind");
}

#[test]
fn a_write_replaces_nothing_but_a_regular_file() {
    let home = Home::new();
    let own = |name: &str| home.path(&format!("open/own/{name}"));
    fs::write(own("f"), "kept").unwrap();
    symlink("f", own("link")).unwrap();
    symlink("/nonexistent", own("dangling")).unwrap();
    fs::create_dir(own("directory")).unwrap();
    symlink("../deep", own("aside")).unwrap();
    let text = json!({ "text": "x" });
    let new = json!({ "text": "x", "only_new": true });
    for (path, more, said) in [
        (own("link"), &text, "is a symbolic link"),
        (own("dangling"), &text, "is a symbolic link"),
        (own("directory"), &text, "not a file that may be replaced"),
        (own("f"), &new, "already exists"),
        (own("none/f"), &text, "does not exist"),
        (own("aside/f"), &text, "leads out of the directory"),
        (own("f/x"), &text, "is not a directory"),
        (own("f"), &json!({}), "either `text` or `base64`"),
        (own("f"), &json!({ "base64": "?" }), "`base64` is not valid"),
    ] {
        let refused = home.failure("file_write", &path, more);
        assert!(refused.contains(said), "{path}: {refused}");
    }
    let long = json!({ "text": "x".repeat(128 * 1024 + 1) });
    assert!(
        home.failure("file_write", &own("f"), &long)
            .contains("131072 bytes at most")
    );
    assert_eq!(fs::read_to_string(own("f")).unwrap(), "kept");
    let most = json!({ "text": "\u{1}".repeat(128 * 1024) });
    assert_eq!(
        home.data("file_write", "open/own/g", &most)["size_bytes"],
        128 * 1024
    );
}
