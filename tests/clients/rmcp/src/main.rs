//! The Rust SDK (rmcp) as a client: `initialize` for the stateful era, `discover` for the stateless one.

#![expect(
    deprecated,
    reason = "sampling and resources/subscribe, which servers still offer"
)]

mod checks;
mod client;

use std::process::ExitCode;
use std::time::Duration;

use rmcp::model::{CallToolResult, ReadResourceRequestParams};
use serde_json::{Value, json};

use checks::{Checks, Outcome, eventually, expect, words};
use client::Client;

/// The time limit of the whole run; a client that hangs has failed.
const BOUND: Duration = Duration::from_secs(480);

const BOX: &str = "gatewren:///public/packageData";
const NOTES: &str = "gatewren:///public/notes";

#[tokio::main]
async fn main() -> ExitCode {
    let lifecycle = std::env::args().nth(1).unwrap_or_default();
    let mut checks = Checks::of(variable("GATEWREN_CLIENT"));
    // reqwest's TLS uses the process's default provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let all = async {
        at_the_box(&lifecycle, &mut checks).await;
        at_the_fixtures(&lifecycle, &mut checks).await;
    };
    if tokio::time::timeout(BOUND, all).await.is_err() {
        checks.report::<()>(
            "comes to its end",
            Err(format!("not done within {BOUND:?}")),
        );
    }
    // Exits instead of returning: a thread that waits for standard input would keep the process alive.
    std::process::exit(i32::from(checks.failed));
}

async fn connect(lifecycle: &str, url: &str, token: &str) -> Outcome<Client> {
    let authorities = std::fs::read(variable("GATEWREN_CA")).map_err(words)?;
    Client::connect(lifecycle, &variable(url), &variable(token), &authorities).await
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

async fn at_the_box(lifecycle: &str, checks: &mut Checks) {
    let connected = connect(lifecycle, "GATEWREN_URL", "GATEWREN_TOKEN").await;
    let Some(mut client) = checks.report("connects", connected) else {
        return;
    };
    let container = variable("GATEWREN_CONTAINER");
    checks.report("lists its tools", lists(&client).await);
    checks.report("calls whoami", whoami(&client).await);
    checks.report(
        "is told what is wrong with its arguments",
        mistaken(&client, &container).await,
    );
    checks.report("reads a resource", reads(&client, &container).await);
    let what = "runs a command in a container";
    if container.is_empty() {
        checks.skip(what);
    } else {
        checks.report(what, runs(&client, &container).await);
    }
    let cancelled = cancels(&client, &container, checks).await;
    checks.report("ends a command by cancelling its call", cancelled);
    let watched = if container.is_empty() {
        BOX.to_owned()
    } else {
        format!("{BOX}/{container}")
    };
    notices(lifecycle, &mut client, &watched, checks).await;
    checks.report("closes", client.service.cancel().await.map_err(words));
}

async fn lists(client: &Client) -> Outcome {
    let tools = client.service.list_all_tools().await.map_err(words)?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    expect(names.contains(&shell()) && names.contains(&"whoami"), names)
}

async fn whoami(client: &Client) -> Outcome {
    let result = client.call("whoami", json!({})).await?;
    expect(!failed(&result) && text(&result).contains("admin"), result)
}

async fn mistaken(client: &Client, container: &str) -> Outcome {
    let result = client
        .call(shell(), inside(container, json!({ "command": 7 })))
        .await?;
    expect(failed(&result) && text(&result).contains("command"), result)
}

async fn reads(client: &Client, container: &str) -> Outcome {
    let result = client
        .service
        .read_resource(ReadResourceRequestParams::new(BOX))
        .await
        .map_err(words)?;
    let text = serde_json::to_string(&result.contents).map_err(words)?;
    expect(text.contains(container), text)
}

async fn runs(client: &Client, container: &str) -> Outcome {
    let command = "echo \"this is $(hostname)\"";
    let result = client
        .call(shell(), inside(container, json!({ "command": command })))
        .await?;
    expect(
        !failed(&result) && text(&result).contains(&format!("this is {container}")),
        result,
    )
}

/// In this SDK, dropping the call's future cancels the call.
async fn cancels(client: &Client, container: &str, checks: &mut Checks) -> Outcome {
    let seconds = 10_000_000 + std::process::id(); // no other client's command
    let asked = json!({ "argv": ["sleep", seconds.to_string()], "timeout_s": 300 });
    let (starts, ends) = (
        format!("see-sleep {seconds}"),
        format!("see-no-sleep {seconds}"),
    );
    tokio::select! {
        result = client.call(shell(), inside(container, asked)) => Err(format!("{result:?}")),
        seen = checks.ask(&starts) => seen,
    }?;
    checks.ask(&ends).await
}

async fn notices(lifecycle: &str, client: &mut Client, watched: &str, checks: &mut Checks) {
    let mut broken = None;
    let subscribed = match lifecycle {
        "initialize" => client.subscribe(&[watched, NOTES]).await,
        _ => client
            .listen(&[watched, NOTES])
            .await
            .map(|ended| broken = Some(ended)),
    };
    checks.report("subscribes", subscribed);
    let what = "hears that a container was restarted";
    if watched == BOX {
        checks.skip(what);
    } else {
        let heard = checks
            .hears(&mut client.notices, watched, "restart-container")
            .await;
        checks.report(what, heard);
    }
    let heard = checks.hears(&mut client.notices, NOTES, "write-row").await;
    checks.report("hears of a row another program wrote", heard);

    let restarted = checks.ask("restart-server").await;
    let outcome = match restarted {
        Ok(()) => eventually(async || whoami(client).await).await,
        Err(why) => Err(why),
    };
    checks.report(
        "goes on when the server was killed and has started again",
        outcome,
    );
    if let Some(mut ended) = broken {
        let again = match ended.recv().await {
            Some(true) => client.listen(&[watched, NOTES]).await,
            _ => Err("its stream did not end".to_owned()),
        };
        checks.report(
            "is told that its subscription ended, and subscribes again",
            again,
        );
    }
    let heard = checks
        .hears_in_the_end(&mut client.notices, NOTES, "write-row")
        .await;
    checks.report("hears of a row after that", heard);
}

/// Checks the server's requests to a client, and its notifications before a result.
async fn at_the_fixtures(lifecycle: &str, checks: &mut Checks) {
    let connected = connect(
        lifecycle,
        "GATEWREN_FIXTURES_URL",
        "GATEWREN_FIXTURES_TOKEN",
    )
    .await;
    let Some(mut client) = checks.report("connects to the fixtures", connected) else {
        return;
    };
    for (what, tool, arguments, wanted) in [
        (
            "answers an elicitation",
            "test_elicitation",
            json!({ "message": "Who are you?" }),
            "Ada",
        ),
        (
            "answers a sampling request",
            "test_sampling",
            json!({ "prompt": "Capital?" }),
            "Paris",
        ),
        (
            "answers in several rounds",
            "test_input_required_result_multi_round",
            json!({}),
            "Both rounds",
        ),
    ] {
        let outcome = says(&client, tool, arguments, wanted).await;
        checks.report(what, outcome);
    }
    checks.report("hears of progress", progresses(&mut client).await);
    checks.report(
        "closes its connection to the fixtures",
        client.service.cancel().await.map_err(words),
    );
}

async fn says(client: &Client, tool: &str, arguments: Value, wanted: &str) -> Outcome {
    let result = client.call(tool, arguments).await?;
    expect(!failed(&result) && text(&result).contains(wanted), result)
}

async fn progresses(client: &mut Client) -> Outcome {
    client.call("test_tool_with_progress", json!({})).await?;
    // Every one of them came before the result, but another task delivers them.
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(client.progress.recv().await.unwrap_or(f64::NAN));
    }
    expect(heard == [0.0, 50.0, 100.0], heard)
}

fn shell() -> &'static str {
    if variable("GATEWREN_CONTAINER").is_empty() {
        "system_shell"
    } else {
        "container_shell"
    }
}

/// Returns the arguments, with the container if there is one.
fn inside(container: &str, mut arguments: Value) -> Value {
    if !container.is_empty() {
        arguments["container"] = json!(container);
    }
    arguments
}

fn failed(result: &CallToolResult) -> bool {
    result.is_error == Some(true)
}

fn text(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|block| block.text.as_str())
        .collect()
}
