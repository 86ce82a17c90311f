//! Checks the fronts that share a server: each answers, and one does the background work.

use gatewren_base::config::Settings;
use gatewren_base::sys::{LockHolder, sanitize};

use super::super::console::listener::{LocalServer, in_url};
use super::super::fronts::running_fronts;
use super::finding::Finding;

const CHECK: &str = "fronts";

/// Checks each front; no findings for a server without a name, which runs alone.
pub async fn look(settings: &Settings) -> Vec<Finding> {
    let fronts = running_fronts(&settings.state_dir);
    let mut found = Vec::new();
    for front in &fronts {
        if let Some(why) = silence(settings, front).await {
            let name = front
                .name
                .as_deref()
                .map_or("without a name".into(), sanitize);
            let seen = format!("front {name} runs and does not answer: {why}");
            found.push(Finding::problem(CHECK, seen, "journalctl -u 'gatewren*'"));
        }
    }
    if !fronts.is_empty() && !fronts.iter().any(|front| front.does_background_work) {
        let seen = "no front does the background work";
        found.push(Finding::problem(CHECK, seen, "systemctl restart gatewren"));
    }
    if found.is_empty() && !fronts.is_empty() {
        let seen = format!("{} fronts run, and each answers", fronts.len());
        found.push(Finding::good(CHECK, seen));
    }
    found
}

/// Returns why a front does not answer; `None` if it answers, or if it serves only the process that started it.
async fn silence(settings: &Settings, front: &LockHolder) -> Option<String> {
    let server = LocalServer::of(settings, Some(front.address?), false).await;
    let at = server.near.ip();
    let answer = server.probe(at, &in_url(at)).await;
    answer
        .err()
        .map(|cause| format!("{}: {cause}", server.near))
}
