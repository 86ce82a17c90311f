//! Tasks whose work is a job: it survives the server's restart, and ends with the task.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::flow_jobs::{Home, MAY_STOP, call, deaf, hold_up, stop, visitor};
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::Server;
use crate::support::tasks::{about, knowing, made, task, until};

/// The server, a container that stops slowly, and the task of the call that stops it.
struct Stopping {
    own: Containers,
    home: Home,
    front: Server,
    client: Client,
    task: String,
}

/// Returns `None` where there are no containers.
fn stopping() -> Option<Stopping> {
    let own = deaf()?;
    let home = Home::new(own.lxcpath());
    let front = home.front("[tasks]\nafter = \"2s\"\n");
    let client = visitor(&front, "bert", &MAY_STOP);
    let begun = knowing(stop(&client)).send();
    hold_up(&own);
    Some(Stopping {
        task: made(&begun),
        own,
        home,
        front,
        client,
    })
}

/// Returns the job in the result of a task.
fn job(ended: &Value) -> String {
    let data = &ended["result"]["structuredContent"];
    assert_eq!(
        (&data["state"], &data["tool"]),
        (&json!("running"), &json!("container_stop")),
        "{ended}"
    );
    data["job"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_whose_server_was_killed_ends_with_the_job_that_goes_on() {
    let Some(mut it) = stopping() else { return };
    assert_eq!(task(&it.client, &it.task)["status"], "working");
    it.front.signal(Signal::SIGKILL);
    it.front.ended();
    let next = it.home.front("");
    let client = next.client().with_token(&it.client.token);
    let ended = task(&client, &it.task);
    assert_eq!(ended["status"], "completed", "{ended}");
    let job = job(&ended);
    assert_eq!(
        call(&client, "job_get", json!({ "job": job }))["state"],
        "running"
    );
    let killed = call(&client, "job_cancel", json!({ "job": job }));
    assert_eq!(killed["killed_because"], "cancelled");
}

#[test]
fn a_stop_of_the_server_ends_a_task_with_its_job_at_once() {
    let Some(mut it) = stopping() else { return };
    it.front.signal(Signal::SIGTERM);
    assert!(it.front.ended().success());
    let next = it.home.front("");
    let client = next.client().with_token(&it.client.token);
    let ended = task(&client, &it.task);
    assert_eq!(ended["status"], "completed", "{ended}");
    let job = job(&ended);
    let killed = call(&client, "job_cancel", json!({ "job": job }));
    assert_eq!(killed["killed_because"], "cancelled");
}

#[test]
fn a_task_that_is_cancelled_takes_its_job_with_it() {
    let Some(it) = stopping() else { return };
    about(&it.client, "tasks/cancel", &it.task).send().result();
    until(&it.client, &it.task, "cancelled");
    wait_until("no job is left", IN_TIME, || {
        let left = call(&it.client, "job_list", json!({}));
        left["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|job| job["state"] != "running")
    });
    assert_eq!(it.own.state("wren"), "RUNNING", "nobody asks it any more");
}
