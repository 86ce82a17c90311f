//! References and names of containers of several runtimes: before the state has them.

use serde_json::json;

use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::{Server, has_sqlite3, server};

/// Both engines, and a server that serves them.
struct Home {
    docker: Engine,
    podman: Engine,
    /// The name that a container of each engine has.
    name: String,
}

impl Home {
    fn new() -> Option<Self> {
        Some(Self {
            docker: Engine::shared(EngineKind::Docker)?,
            podman: Engine::shared(EngineKind::Podman)?,
            name: format!("it-{}", marker()),
        })
    }

    /// Starts a server with a space that has Docker's container alone.
    fn server(&self) -> Server {
        let bounds = format!(
            "runtimes = [\"docker\", \"podman\"]\ndocker_socket = \"{}\"\npodman_socket = \"{}\"\n",
            self.docker.socket().display(),
            self.podman.socket().display()
        );
        let settings = format!(
            "[spaces.pond]\ncontainers = [\"{}\"]\n",
            self.docker.reference(&self.name)
        );
        let server = server().policy("admin").settings(&settings);
        server.bounds(&bounds).run_inside(&self.docker).start()
    }
}

/// Adds an agent to the space, and waits until it may call.
fn kept(server: &Server) -> Client {
    let args = [
        "agent", "add", "kept", "--policy", "admin", "--space", "pond",
    ];
    let said = tell_by(&server.settings_file(), &args);
    let client = server.client().with_token(said["token"].as_str().unwrap());
    wait_until("it comes in", IN_TIME, || {
        client.modern("tools/list").send().status == 200
    });
    client
}

#[test]
fn a_name_is_found_on_the_host_before_the_state_has_it() {
    let Some(home) = Home::new() else { return };
    if !has_sqlite3() {
        return;
    }
    let name = home.name.as_str();
    let _docker = home.docker.run_named(name);
    let server = home.server();
    let admin = server.client();
    let kept = kept(&server);
    let reference = home.docker.reference(name);
    let forget = |references: &[&str]| {
        let place = |reference: &&str| format!("/public/packageData/{reference}");
        let has = |reference: &&str| {
            let look = admin.call("state_get", json!({ "pointer": place(reference) }));
            look.send().result()["isError"] != true
        };
        wait_until("the state has them", IN_TIME, || references.iter().all(has));
        let removals = references
            .iter()
            .map(|reference| json!({ "op": "remove", "path": place(reference) }));
        server.patch_from_outside(&removals.collect());
        wait_until("the state has them no more", IN_TIME, || {
            !references.iter().any(has)
        });
    };
    let info = |client: &Client, container: &str| {
        client
            .call("container_info", json!({ "container": container }))
            .send()
    };
    forget(&[&reference]);
    let command = json!({ "container": name, "command": "echo found" });
    let found = admin.call("container_shell", command).send().data();
    assert_eq!(found["stdout"], "found\n");
    assert_eq!(info(&kept, name).data()["name"], reference.as_str());

    // A second one with the name: for the agent of the space it does not exist.
    let _podman = home.podman.run_named(name);
    forget(&[&reference, &home.podman.reference(name)]);
    let ambiguous = info(&admin, name).failure();
    assert!(
        ambiguous.contains("several containers have the name"),
        "{ambiguous}"
    );
    assert_eq!(info(&kept, name).data()["name"], reference.as_str());
}

#[test]
fn a_name_that_only_a_hidden_container_has_is_answered_as_one_of_no_container() {
    let Some(home) = Home::new() else { return };
    let hidden = format!("it-{}", marker());
    let _container = home.podman.run_named(&hidden);
    let server = home.server();
    let kept = kept(&server);
    let never = "n".repeat(hidden.len());
    for tool in ["container_info", "container_shell", "container_stop"] {
        let ask = |name: &str| {
            let mut arguments = json!({ "container": name });
            if tool == "container_shell" {
                arguments["command"] = json!("true");
            }
            kept.call(tool, arguments).send().body.replace(name, "NAME")
        };
        assert_eq!(ask(&hidden), ask(&never), "{tool}");
    }
}
