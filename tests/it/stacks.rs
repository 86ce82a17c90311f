//! Compose stacks of real daemons: their containers are listed, described, started and stopped together.

use serde_json::{Value, json};

use crate::support::agents::{UNASKED, admit};
use crate::support::client::Client;
use crate::support::command::tell;
use crate::support::engines::{Engine, EngineContainer, EngineKind};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::{Server, server};

/// A server of one engine, and an agent that may do everything without confirmation.
struct Home {
    server: Server,
    agent: Client,
}

impl Home {
    fn new(engine: &Engine, settings: &str) -> Self {
        let (name, socket) = (engine.kind.name(), engine.socket());
        let socket = socket.display();
        let bounds = format!("runtimes = [\"{name}\"]\n{name}_socket = \"{socket}\"\n");
        let server = server().policy("admin").settings(settings);
        let server = server.bounds(&bounds).start();
        let agent = admit(
            &server,
            "keeper",
            &[&UNASKED[..], &["--space", "*"]].concat(),
        );
        Self { server, agent }
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.agent.call(tool, arguments).send().data()
    }

    fn refused(&self, tool: &str, arguments: Value) -> String {
        self.agent.call(tool, arguments).send().failure()
    }

    /// Returns one of the times that the engine knows of a container, as RFC 3339 in UTC.
    fn time(&self, container: &EngineContainer<'_>, key: &str) -> String {
        let details = self.call(
            "container_info",
            json!({ "container": container.reference() }),
        );
        details["engine"][key].as_str().unwrap().to_owned()
    }
}

/// Adds an agent that may do disruptive things without a confirmation.
fn guest(server: &Server, options: &[&str]) -> Client {
    admit(server, "guest", &[&UNASKED, options].concat())
}

/// Returns the engines of the lab that are there.
fn engines() -> impl Iterator<Item = Engine> {
    EngineKind::ALL.into_iter().filter_map(Engine::shared)
}

/// Starts a container of a service, with further labels of Compose.
fn service<'a>(
    engine: &'a Engine,
    project: &str,
    name: &str,
    labels: &[&str],
) -> EngineContainer<'a> {
    let own = [format!("project={project}"), format!("service={name}")];
    let labels = labels.iter().map(|label| (*label).to_owned());
    let options = own.into_iter().chain(labels);
    let options: Vec<String> = options
        .map(|label| format!("--label=com.docker.compose.{label}"))
        .collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    engine.run(&options)
}

/// Returns what became of a container, of the answer of a change.
fn outcome<'a>(changed: &'a Value, container: &EngineContainer<'_>) -> &'a Value {
    let mut all = changed["containers"].as_array().unwrap().iter();
    let own = all.find(|change| change["container"] == container.reference());
    &own.unwrap()["outcome"]
}

#[test]
fn a_stack_stops_and_starts_in_the_order_of_its_dependencies() {
    for engine in engines() {
        let project = format!("it-{}", marker());
        let depends = ["depends_on=db:service_started:false"];
        // Sorted by name, the dependent one comes first.
        let web = service(&engine, &project, "app", &depends);
        let db = service(&engine, &project, "db", &[]);
        let once = service(&engine, &project, "app", &["oneoff=True"]);
        let home = Home::new(&engine, "");
        let stack = json!({ "stack": engine.reference(&project) });

        let list = home.call("stack_list", json!({}));
        let mut lines = list["stacks"].as_array().unwrap().iter();
        let line = lines.find(|line| line["stack"] == stack["stack"]).unwrap();
        assert_eq!(line["services"], json!(["app", "db"]));
        assert_eq!(
            (&line["containers"], &line["running"]),
            (&json!(2), &json!(2))
        );

        let mut quick = stack.clone();
        quick["grace_s"] = json!(5);
        let restarted = home.call("stack_restart", quick.clone());
        for container in [&web, &db] {
            assert_eq!(outcome(&restarted, container), "restarted", "{restarted}");
        }
        assert!(home.time(&db, "started_at") < home.time(&web, "started_at"));
        let stopped = home.call("stack_stop", quick);
        assert_eq!(outcome(&stopped, &db), "stopped");
        assert!(home.time(&web, "finished_at") <= home.time(&db, "finished_at"));
        for container in [&web, &db] {
            assert_eq!(container.inspect(".State.Running"), "false");
        }
        assert_eq!(once.inspect(".State.Running"), "true");

        web.act("start");
        // The name alone is enough where it is unique.
        let started = home.call("stack_start", json!({ "stack": project }));
        assert_eq!(outcome(&started, &db), "started");
        assert_eq!(outcome(&started, &web), "unchanged");
    }
}

#[test]
fn a_stack_says_which_images_it_runs_and_whether_the_daemon_has_newer_ones() {
    for engine in engines() {
        let (project, source) = (format!("it-{}", marker()), engine.run(&[]));
        let image = format!("localhost/it-{}:1", marker());
        engine.cli(&["commit", &source.name, &image]);
        let name = format!("it-{}", marker());
        let options = ["run", "--detach", "--network=none", "--name", &name];
        let label = format!("--label=com.docker.compose.project={project}");
        engine.cli(&[&options[..], &[&label, &image]].concat());
        let home = Home::new(&engine, "");
        let info = || {
            let info = home.call("stack_info", json!({ "stack": engine.reference(&project) }));
            info["containers"][0].clone()
        };

        let before = info();
        assert_eq!(before["container"], engine.reference(&name));
        assert_eq!(
            (&before["state"], &before["image"]),
            (&json!("running"), &json!(image))
        );
        assert!(before["image_id"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(before["newer_image"], "no");
        engine.cli(&["commit", &name, &image]);
        let after = info();
        assert_eq!(
            (&after["newer_image"], &after["image_id"]),
            (&json!("yes"), &before["image_id"])
        );
        engine.cli(&["rmi", "--no-prune", &image]);
        assert_eq!(info()["newer_image"], "unknown");
        engine.cli(&["rm", "--force", &name]);
        engine.cli(&["rmi", before["image_id"].as_str().unwrap()]);
    }
}

#[test]
fn a_stack_with_a_container_beyond_reach_is_as_one_that_does_not_exist() {
    for engine in engines() {
        let [project, other] = [(); 2].map(|()| format!("it-{}", marker()));
        let near = service(&engine, &project, "near", &[]);
        let far = service(&engine, &project, "far", &[]);
        let whole = service(&engine, &other, "whole", &[]);
        let space = format!(
            "[spaces.part]\ncontainers = [\"{}\", \"{}\"]\n",
            near.reference(),
            whole.reference()
        );
        let home = Home::new(&engine, &space);
        let agent = guest(&home.server, &["--space", "part"]);
        let list = agent.call("stack_list", json!({})).send().data();
        let mut shown = list["stacks"].as_array().unwrap().iter();
        let shown: Vec<&Value> = shown.by_ref().map(|line| &line["stack"]).collect();
        assert_eq!(shown, [&json!(engine.reference(&other))]);

        let never = format!("it-{}", marker());
        for tool in ["stack_info", "stack_start", "stack_stop", "stack_restart"] {
            for prefix in ["", &format!("{}:", engine.kind.name())] {
                let refused = |project: &str| {
                    let stack = format!("{prefix}{project}");
                    agent.call(tool, json!({ "stack": stack })).send().failure()
                };
                let beyond = refused(&project).replace(&project, &never);
                assert_eq!(beyond, refused(&never), "{tool}");
                assert!(beyond.contains("there is no stack"), "{beyond}");
            }
        }
        for container in [&near, &far] {
            assert_eq!(container.inspect(".State.Running"), "true");
        }
        let stack = json!({ "stack": engine.reference(&other), "grace_s": 5 });
        let stopped = agent.call("stack_stop", stack).send().data();
        assert_eq!(outcome(&stopped, &whole), "stopped");
    }
}

#[test]
fn what_could_not_be_started_is_listed_with_what_was_done() {
    for engine in engines() {
        let project = format!("it-{}", marker());
        let depends = ["depends_on=job:service_started:false"];
        let app = service(&engine, &project, "app", &depends);
        let other = service(&engine, &project, "other", &[]);
        let job = service(&engine, &project, "job", &[]);
        for container in [&app, &other] {
            container.act("stop");
        }
        // A frozen container is not started.
        job.act("pause");
        let home = Home::new(&engine, "");
        let error = home.refused("stack_start", json!({ "stack": project }));
        for part in [
            format!(
                "1 of the 3 containers of the stack '{}'",
                engine.reference(&project)
            ),
            format!("{}: started", other.reference()),
            format!("{}: failed: container", job.reference()),
            "is frozen".to_owned(),
            format!("{}: skipped: the service 'job'", app.reference()),
        ] {
            assert!(error.contains(&part), "{part}: {error}");
        }
        job.act("unpause");
        assert_eq!(app.inspect(".State.Running"), "false");
    }
}

/// Waits until the state has these containers as they are: running, each with its id.
fn until_known(agent: &Client, containers: &[&EngineContainer<'_>]) {
    for container in containers {
        let place = format!("/public/packageData/{}", container.reference());
        let id = container.inspect(".Id");
        let look = agent.call("state_get", json!({ "pointer": place }));
        wait_until("the state has the container", IN_TIME, || {
            let known = look.send().result()["structuredContent"]["value"].clone();
            known["engine"]["id"] == id.as_str() && known["status"] == "running"
        });
    }
}

#[test]
fn an_approval_of_a_stack_is_asked_for_again_when_its_containers_have_changed() {
    for engine in engines() {
        let project = format!("it-{}", marker());
        let web = service(&engine, &project, "web", &[]);
        let home = Home::new(&engine, "");
        let options = ["--space", "*", "--tool", "stack_stop=propose"];
        let agent = guest(&home.server, &options);
        until_known(&agent, &[&web]);
        let stack = json!({ "stack": engine.reference(&project), "grace_s": 1 });
        let proposed = agent.call("stack_stop", stack).send().data();
        let change = proposed["change"].as_str().unwrap();
        let directory = home.server.state_dir();
        let approve = || tell(&directory, &["inbox", "approve", change, "--wait"]);
        let (shown, _) = tell(&directory, &["inbox", "show", change]);
        let rests_on = shown["rests_on"].to_string();
        let id = format!("/public/packageData/{}/engine/id", web.reference());
        assert!(rests_on.contains(&id), "{rests_on}");

        // A container that runs anew, and one that has come since.
        web.act("restart");
        wait_until("the change is known to be out of date", IN_TIME, || {
            tell(&directory, &["inbox", "show", change]).0["moved_since"].is_u64()
        });
        let (asked, code) = approve();
        assert_eq!((&asked[0]["status"], code), (&json!("pending"), Some(4)));
        until_known(&agent, &[&web]);
        let db = service(&engine, &project, "db", &[]);
        until_known(&agent, &[&db]);
        let (asked, code) = approve();
        assert_eq!((&asked[0]["status"], code), (&json!("pending"), Some(4)));
        for container in [&web, &db] {
            assert_eq!(container.inspect(".State.Running"), "true");
        }
        // The state may still change once more.
        wait_until("it is done", IN_TIME, || approve().1 == Some(0));
        for container in [&web, &db] {
            assert_eq!(container.inspect(".State.Running"), "false");
        }
    }
}

#[test]
fn what_is_denied_for_a_container_is_not_possible_through_its_stack() {
    let Some(engine) = engines().next() else {
        return;
    };
    let project = format!("it-{}", marker());
    let web = service(&engine, &project, "web", &[]);
    let home = Home::new(&engine, "");
    let options = [
        "--space",
        "*",
        "--tool",
        "container_stop=deny",
        "--tool",
        "stack_stop=allow",
        "--tool",
        "container_restart=propose",
    ];
    let agent = guest(&home.server, &options);
    let stack = json!({ "stack": engine.reference(&project), "grace_s": 1 });
    let call = |tool: &str| agent.call(tool, stack.clone()).send();
    assert!(
        call("stack_stop")
            .message()
            .contains("unknown tool \"stack_stop\"")
    );
    let listed = agent.modern("tools/list").send().names("tools");
    assert!(!listed.contains(&"stack_stop".to_owned()), "{listed:?}");
    assert_eq!(call("stack_restart").data()["status"], "pending");
    assert_eq!(web.inspect(".State.Running"), "true");
    let start = json!({ "stack": engine.reference(&project) });
    let started = agent.call("stack_start", start).send().data();
    assert_eq!(outcome(&started, &web), "unchanged");
}
