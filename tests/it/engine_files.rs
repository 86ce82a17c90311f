//! Files of containers of Docker and Podman that do not run.

use std::fs;

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::marker;
use crate::support::server::{Directory, Server, server};

/// What the container leaves behind: files, links to a file, to a directory and into a mount.
const MAKE: &str = "mkdir -p /d/sub /run; printf 0123456789 > /d/f; echo y > /d/sub/y; ln -s f /d/l; \
                    ln -s /etc /elink; ln -s /mnt/host /blink; ln -s /run /r; mkfifo /d/p; \
                    printf 'ID=wren\\n' > /d/ü\\ \\&x; \
                    dd if=/dev/zero of=/big bs=1M count=66 2>/dev/null";

struct Home {
    server: Server,
    admin: Client,
}

impl Home {
    fn new(engine: &Engine) -> Self {
        let (name, socket) = (engine.kind.name(), engine.socket());
        let socket = socket.display();
        let bounds = format!(
            "runtimes = [\"{name}\"]\n{name}_socket = \"{socket}\"\ncontainer_files = \"on\"\n"
        );
        let server = server().policy("admin").settings("").bounds(&bounds);
        let server = server.run_inside(engine).start();
        let options = ["--policy", "admin", "--space", "*"];
        let allowed = ["--mode", "reveal=allow", "--mode", "persist=allow"];
        let admin = admit(&server, "guest", &[options, allowed].concat());
        Self { server, admin }
    }

    fn list(&self, container: &str, path: &str) -> Result<Value, String> {
        self.call("container_file_list", container, json!({ "path": path }))
    }

    fn read(&self, container: &str, arguments: Value) -> Result<Value, String> {
        self.call("container_file_read", container, arguments)
    }

    fn call(&self, tool: &str, container: &str, mut arguments: Value) -> Result<Value, String> {
        arguments["container"] = json!(container);
        let answer = self.admin.call(tool, arguments).send();
        if answer.result()["isError"] == true {
            return Err(answer.failure());
        }
        Ok(answer.data())
    }
}

/// A container that has stopped, from an image of its own, with a directory of the host at two places.
struct Stopped<'a> {
    engine: &'a Engine,
    name: String,
    image: String,
    reference: String,
}

impl<'a> Stopped<'a> {
    fn new(engine: &'a Engine, host: &Directory) -> Self {
        let source = engine.run(&[]);
        engine.cli(&["exec", &source.name, "sh", "-c", MAKE]);
        let (name, image) = (
            format!("it-{}", marker()),
            format!("localhost/it-{}:1", marker()),
        );
        engine.cli(&["commit", &source.name, &image]);
        let mounts = ["/mnt/host", "/r/inner"].map(|to| format!("{}:{to}", host.0.display()));
        let [first, second] = &mounts;
        let options = ["run", "--detach", "--network=none", "--name", &name];
        let mounts = ["--volume", first, "--volume", second, &image];
        engine.cli(&[&options[..], &mounts].concat());
        engine.cli(&["stop", "--time", "5", &name]);
        Self {
            reference: engine.reference(&name),
            engine,
            name,
            image,
        }
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.engine.cli(&["rm", "--force", &self.name]);
        self.engine.cli(&["rmi", &self.image]);
    }
}

fn names(page: &Value) -> Vec<&str> {
    let entries = page["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["name"].as_str().unwrap())
        .collect()
}

#[test]
fn files_of_a_container_that_does_not_run_are_listed_and_read_without_links_and_mounts() {
    for engine in EngineKind::ALL.into_iter().filter_map(Engine::shared) {
        let host = Directory::new();
        fs::write(host.join("secret"), "of the host").unwrap();
        let stopped = Stopped::new(&engine, &host);
        let home = Home::new(&engine);
        files_are_listed_and_read(&home, &stopped.reference);
        links_and_mounts_are_not_followed(&home, &stopped.reference, engine.kind);
        what_is_too_much_is_refused(&home, &stopped.reference);
        drop(home.server);
    }
}

fn files_are_listed_and_read(home: &Home, container: &str) {
    let page = home.list(container, "/d").unwrap();
    assert_eq!(names(&page), ["f", "l", "p", "sub", "ü &x"]);
    let entries = page["entries"].as_array().unwrap().iter();
    let kinds: Vec<&Value> = entries.map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["file", "link", "other", "directory", "file"]);
    assert_eq!(page["entries"][0]["size_bytes"], 10);
    let part = json!({ "path": "/d/f", "offset": 4, "bytes": 3 });
    let part = home.read(container, part).unwrap();
    assert_eq!(part["text"], "456");
    assert_eq!(part["size_bytes"], 10);
    let named = home.read(container, json!({ "path": "/d/ü &x" })).unwrap();
    assert_eq!(named["text"], "ID=wren\n");
}

fn links_and_mounts_are_not_followed(home: &Home, container: &str, kind: EngineKind) {
    for (path, why) in [
        ("/d/l", "is a symbolic link to /d/f"),
        ("/elink/passwd", "is a symbolic link to /etc"),
        ("/blink/secret", "is a symbolic link to /mnt/host"),
        ("/mnt/host/secret", "is on a separate mount"),
        // The mount is at /r/inner, and /r is a link to /run. Podman shows it there only while the container runs.
        (
            "/run/inner/secret",
            match kind {
                EngineKind::Docker | EngineKind::DockerInLxc => "is on a separate mount",
                EngineKind::Podman | EngineKind::PodmanUser => "there is no",
            },
        ),
        ("/r/inner/secret", "is a symbolic link to /run"),
        ("/d", "it is a directory"),
        ("/d/p", "it is not a regular file"),
        ("/nope/x", "there is no /nope/x in the container"),
    ] {
        let refused = home.read(container, json!({ "path": path })).unwrap_err();
        assert!(refused.contains(why), "{path}: {refused}");
    }
    for (path, why) in [
        ("/blink", "is a symbolic link"),
        ("/mnt/host", "is on a separate mount"),
        ("/d/f", "is not a directory"),
    ] {
        let refused = home.list(container, path).unwrap_err();
        assert!(refused.contains(why), "{path}: {refused}");
    }
}

fn what_is_too_much_is_refused(home: &Home, container: &str) {
    // The engine would stream all of it.
    let whole = home.list(container, "/").unwrap_err();
    assert!(whole.contains("more than 64 MiB"), "{whole}");
    let start = json!({ "path": "/big", "bytes": 1 });
    let start = home.read(container, start).unwrap();
    assert_eq!(start["size_bytes"], 66 << 20);
    let write = json!({ "path": "/d/f", "text": "x" });
    let written = home.call("container_file_write", container, write);
    assert!(written.unwrap_err().contains("start it first"));
}
