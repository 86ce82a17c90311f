//! References and names of containers of several runtimes: in prompts, in completions, and before the state has them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, SetOnDrop, marker, wait_until};
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

    /// Waits until the state has the containers of both engines.
    fn wait_for_both(&self, client: &Client) {
        for engine in [&self.docker, &self.podman] {
            let place = format!("/public/packageData/{}", engine.reference(&self.name));
            let look = client.call("state_get", json!({ "pointer": place }));
            wait_until("the state has it", IN_TIME, || {
                look.send().result()["isError"] != true
            });
        }
    }
}

/// Adds an agent to the space, and waits until it may call.
fn kept(server: &Server) -> Client {
    admit(server, "kept", &["--policy", "admin", "--space", "pond"])
}

/// Returns what is offered for the container of a prompt.
fn offered(client: &Client, typed: &str) -> Vec<String> {
    let reference = json!({ "type": "ref/prompt", "name": "diagnose_container" });
    let argument = json!({ "name": "container", "value": typed });
    let completing = client.modern("completion/complete");
    let completing = completing
        .param("ref", reference)
        .param("argument", argument);
    let values = completing.send().result()["completion"]["values"].clone();
    let values = values.as_array().unwrap().iter();
    values
        .map(|value| value.as_str().unwrap().to_owned())
        .collect()
}

/// Asks for the prompt about a container.
fn prompt(client: &Client, container: &str) -> crate::support::answer::Answer {
    let get = client.modern("prompts/get").name("diagnose_container");
    get.param("arguments", json!({ "container": container }))
        .send()
}

/// Returns the messages of a prompt, one below the other.
fn text(result: &Value) -> String {
    let messages = result["messages"].as_array().unwrap().iter();
    let texts = messages.map(|message| message["content"]["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn prompts_and_completions_take_references_and_names() {
    let Some(home) = Home::new() else { return };
    let name = home.name.as_str();
    let _containers = [home.docker.run_named(name), home.podman.run_named(name)];
    let references = [home.docker.reference(name), home.podman.reference(name)];
    let server = home.server();
    let admin = server.client();
    home.wait_for_both(&admin);

    // By the reference, and by the name, which two containers have.
    assert_eq!(offered(&admin, &references[1]), references[1..]);
    assert_eq!(offered(&admin, name), references);
    for reference in &references {
        let told = text(&prompt(&admin, reference).result());
        assert!(
            told.contains(reference) && told.contains("state_blame"),
            "{told}"
        );
        assert!(!told.contains("It failed"), "{told}");
    }
    let ambiguous = prompt(&admin, name).message();
    for reference in &references {
        assert!(ambiguous.contains(reference), "{ambiguous}");
    }

    // Within the space, only one container has the name, and the other does not exist.
    let kept = kept(&server);
    assert_eq!(offered(&kept, ""), references[..1]);
    let told = text(&prompt(&kept, name).result());
    assert!(
        told.contains(&references[0]) && !told.contains("It failed"),
        "{told}"
    );
    let never = home.podman.reference("never-0q");
    assert_eq!(
        prompt(&kept, &references[1])
            .message()
            .replace(&references[1], "x"),
        prompt(&kept, &never).message().replace(&never, "x")
    );
}

/// Runs something while another program empties the state of its containers, again and again: the server puts them back
/// a moment later each time.
fn without_containers(server: &Server, run: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                server.patch_from_outside(&json!([
                    { "op": "add", "path": "/public/packageData", "value": {} }
                ]));
            }
        });
        let _over = SetOnDrop(&is_over);
        let pointer = json!({ "pointer": "/public/packageData" });
        let look = server.client().call("state_get", pointer);
        wait_until("the state has them no more", IN_TIME, || {
            look.send().result()["structuredContent"]["value"] == json!({})
        });
        run();
    });
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
    let info = |client: &Client, container: &str| {
        client
            .call("container_info", json!({ "container": container }))
            .send()
    };
    without_containers(&server, || {
        let command = json!({ "container": name, "command": "echo found" });
        let found = admin.call("container_shell", command).send().data();
        assert_eq!(found["stdout"], "found\n");
        assert_eq!(info(&kept, name).data()["name"], reference.as_str());
        assert!(text(&prompt(&admin, name).result()).contains(&reference));
    });

    // A second one with the name: for the agent of the space it does not exist.
    let _podman = home.podman.run_named(name);
    without_containers(&server, || {
        let ambiguous = info(&admin, name).failure();
        assert!(
            ambiguous.contains("several containers have the name"),
            "{ambiguous}"
        );
        assert_eq!(info(&kept, name).data()["name"], reference.as_str());
    });
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
