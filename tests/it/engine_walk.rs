//! What an AI client does with "why is docker:jellyfin slow, restart it, look at its log", with no other tools than those
//! that the server lists for an agent with the policy `operate`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::tell;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Server, server};

/// Scans its library at its first start, which takes a whole CPU, and serves after the next start.
const JELLYFIN: &str = "trap 'echo \"[INF] shutting down\"; exit 0' TERM
echo '[INF] Jellyfin starts'
if [ ! -e /scanned ]; then
    touch /scanned
    echo '[WRN] library scan: item 3 of 90000'
    while :; do :; done
fi
echo '[INF] startup complete'
while :; do sleep 1 & wait; done";

/// A client that calls only listed tools, and the transcript so far: the output of a failed test, or with
/// `--nocapture`.
struct Walk {
    client: Client,
    tools: Vec<String>,
    transcript: String,
}

impl Walk {
    fn begin(client: Client) -> Self {
        let listed = client.modern("tools/list").send();
        let tools = listed.names("tools");
        let mut walk = Self {
            client,
            tools,
            transcript: String::new(),
        };
        walk.note(&format!("tools/list: {}", walk.tools.join(" ")));
        walk
    }

    fn note(&mut self, line: &str) {
        let _ = writeln!(self.transcript, "{line}");
    }

    /// Calls a listed tool and returns its data.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        assert!(self.tools.iter().any(|one| one == tool), "{tool} is listed");
        self.note(&format!("> {tool} {arguments}"));
        let result = self.client.call(tool, arguments).send().result();
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        self.note(&format!("< {text}"));
        assert_ne!(result["isError"], true, "{text}");
        result["structuredContent"].clone()
    }

    /// Measures the container until its use of a CPU is as wanted.
    fn cpu(&mut self, container: &Value, is_wanted: fn(f64) -> bool) -> f64 {
        let mut percent = 0.0;
        wait_until("the use of the CPU is as wanted", IN_TIME, || {
            let measured = self.call("container_stats", container.clone());
            percent = measured["containers"][0]["cpu_percent"].as_f64().unwrap();
            is_wanted(percent)
        });
        percent
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the test harness captures the transcript"
)]
impl Drop for Walk {
    fn drop(&mut self) {
        eprintln!("--- what the client saw\n{}---", self.transcript);
    }
}

fn state_directory(server: &Server) -> PathBuf {
    let state = Path::new(server.text("state_db"));
    state.parent().unwrap().to_owned()
}

#[test]
fn an_agent_finds_why_a_container_of_docker_is_slow_has_it_restarted_and_reads_its_log() {
    let Some(engine) = Engine::shared(EngineKind::Docker) else {
        return;
    };
    let own = engine.run_line("jellyfin", JELLYFIN);
    let server = server().engines(std::slice::from_ref(&engine)).start();
    let mut walk = Walk::begin(server.client());
    let jellyfin = json!({ "container": own.reference() });

    // Why is it slow? The user's words name it exactly as the list does.
    let list = walk.call("container_list", json!({}));
    let mut lines = list["containers"].as_array().unwrap().iter();
    let line = lines.find(|line| line["name"] == own.reference()).unwrap();
    assert_eq!(line["state"], "running", "{line}");
    let percent = walk.cpu(&jellyfin, |percent| percent > 20.0);
    let before = walk.call("container_logs", jellyfin.clone());
    let text = before["text"].as_str().unwrap();
    assert!(text.contains("library scan: item 3 of 90000"), "{text}");

    // Restart it: the owner decides.
    let proposed = walk.call("container_restart", jellyfin.clone());
    assert_eq!(proposed["status"], "pending", "{proposed}");
    assert_eq!(proposed["applied"], false, "{proposed}");
    let change = proposed["change"].as_str().unwrap();
    let home = state_directory(&server);
    let (shown, _) = tell(&home, &["inbox", "show", change]);
    assert_eq!(shown["arguments"], jellyfin, "{shown}");
    tell(&home, &["inbox", "approve", change, "--wait"]);
    let restarted = walk.call("change_get", json!({ "change": change }));
    assert_eq!(restarted["status"], "applied", "{restarted}");

    // Look at its log: only what came after the lines that it has read.
    let cursor = before["cursor"].clone();
    let mut text = String::new();
    wait_until("the log has its next start", IN_TIME, || {
        let newer = json!({ "container": own.reference(), "cursor": cursor });
        let after = walk.call("container_logs", newer);
        after["text"].as_str().unwrap().clone_into(&mut text);
        text.contains("startup complete")
    });
    assert!(text.contains("Jellyfin starts"), "{text}");
    assert!(!text.contains("library scan"), "{text}");
    let rest = walk.cpu(&jellyfin, |percent| percent < 10.0);
    assert!(rest < percent, "{rest} %, and {percent} % before");
}
