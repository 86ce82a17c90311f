//! What pages show of a container: the icon of its runtime, its state, health, image and Compose project.

use maud::{Markup, html};
use serde_json::Value;

use super::parts::{name, time};
use super::texts;
use gatewren_base::config::RuntimeKind;
use gatewren_host::backends::ContainerRef;

/// The most rights over the host that are listed; the others are counted.
const MAX_RIGHTS: usize = 6;

/// Renders the icon of a runtime; the word of the runtime stands beside it, so screen readers skip it.
fn icon(runtime: RuntimeKind) -> Markup {
    let lines = match runtime {
        // A box.
        RuntimeKind::Lxc => "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
        // Three stacked crates.
        RuntimeKind::Docker | RuntimeKind::DockerInLxc => {
            "M7.5 4h9v8h-9zM3 12h9v8H3zM12 12h9v8h-9z"
        }
        // Three pods.
        RuntimeKind::Podman => {
            "M15.5 7.5a3.5 3.5 0 1 1-7 0a3.5 3.5 0 1 1 7 0zM10.5 16.5a3.5 3.5 0 1 1-7 0a3.5 3.5 0 1 1 7 0z\
             M20.5 16.5a3.5 3.5 0 1 1-7 0a3.5 3.5 0 1 1 7 0z"
        }
    };
    html! { svg class="icon" viewBox="0 0 24 24" aria-hidden="true" { path d=(lines) {} } }
}

/// Renders the target of a call: with an icon if it is a container of Docker or Podman. The name of one of LXC could as
/// well be that of another thing.
pub fn target(text: &str) -> Markup {
    let runtime = text
        .parse()
        .map(|container: ContainerRef| container.runtime());
    let runtime = runtime.ok().filter(|runtime| *runtime != RuntimeKind::Lxc);
    html! { @if let Some(runtime) = runtime { (icon(runtime)) " " } (name(text)) }
}

/// The path of a container's own page.
pub fn container_path(id: &str) -> String {
    let name: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/owner/containers/{name}")
}

/// The begin of the current status: the time of the engine, or else of the observed change.
pub fn since(container: &Value, seen_ms: Option<u64>) -> Option<u64> {
    let member = match container.get("status")?.as_str()? {
        "running" => "started_ms",
        _ => "finished_ms",
    };
    let engine = container
        .get("engine")
        .and_then(|engine| engine.get(member));
    engine.and_then(Value::as_u64).or(seen_ms)
}

/// Renders the status of a container: its colour repeats the word.
pub fn status_tag(status: &str) -> Markup {
    let class = match status {
        "running" => "tag good",
        "stopped" => "tag soft",
        _ => "tag warn",
    };
    html! { span class=(class) { (name(status)) } }
}

/// Renders when the status began.
pub fn since_words(status: &str, since_ms: Option<u64>) -> Markup {
    let verb = match status {
        "running" => texts::STARTED,
        "stopped" => texts::STOPPED,
        _ => texts::CHANGED,
    };
    html! { @if let Some(ms) = since_ms { (verb) " " (time(ms)) } }
}

/// Renders the head of a container's card from its entry in the state.
pub fn container_head(id: &str, container: &Value, since_ms: Option<u64>) -> Markup {
    let engine = container.get("engine");
    let status = text(Some(container), "status").unwrap_or("-");
    let health = engine.and_then(|engine| text(engine.get("health"), "status"));
    let is_stale = container.get("stale").and_then(Value::as_bool) == Some(true);
    html! {
        h3 {
            (icon(runtime_of(id))) " " a href=(container_path(id)) { (name(id)) } " " (status_tag(status))
            @if let Some(health) = health {
                " " span class=(health_class(health)) { (name(health)) }
            }
            @if is_stale { " " span class="tag warn" { (texts::STALE) } }
        }
        p { (since_words(status, since_ms)) (addresses(container)) }
        (description(id, container))
    }
}

/// Renders the addresses of a container.
fn addresses(container: &Value) -> Markup {
    let addresses = container.get("addresses").and_then(Value::as_array);
    html! { @for address in addresses.into_iter().flatten().filter_map(Value::as_str) { " " code { (name(address)) } } }
}

/// Renders the runtime, image and project of a container, how it ended, and whether its root is that of the host.
pub fn description(id: &str, container: &Value) -> Markup {
    let engine = container.get("engine");
    let is_stopped = text(Some(container), "status") == Some("stopped");
    html! {
        p class="soft" {
            (runtime_of(id).title())
            @if let Some(image) = text(engine, "image") { " · " (texts::IMAGE) " " (name(image)) }
            @if let Some(compose) = engine.and_then(|engine| engine.get("compose")) { (project(compose)) }
            @if let Some(end) = engine.filter(|_| is_stopped).and_then(abnormal_end) { " · " (end) }
        }
        (rights(engine, "host_rights", texts::COUNTS_AS_HOST))
        (rights(engine, "lxc_rights", texts::COUNTS_AS_LXC))
    }
}

fn runtime_of(id: &str) -> RuntimeKind {
    let container = id.parse::<ContainerRef>();
    container.map_or(RuntimeKind::Lxc, |container| container.runtime())
}

fn health_class(health: &str) -> &'static str {
    match health {
        "unhealthy" => "tag bad",
        _ => "tag soft",
    }
}

fn project(compose: &Value) -> Markup {
    html! {
        @if let Some(project) = text(Some(compose), "project") {
            " · " (texts::COMPOSE_PROJECT) " " (name(project))
            @if let Some(service) = text(Some(compose), "service") { ", " (texts::SERVICE) " " (name(service)) }
        }
    }
}

/// How a stopped container ended, if that was not by itself and without an error.
fn abnormal_end(engine: &Value) -> Option<String> {
    if engine.get("oom_killed").and_then(Value::as_bool) == Some(true) {
        return Some(texts::OUT_OF_MEMORY.to_owned());
    }
    let code = engine.get("exit_code").and_then(Value::as_i64);
    code.filter(|code| *code != 0)
        .map(|code| format!("{} {code}", texts::EXIT_CODE))
}

/// Renders why a container counts as the host, or as the container of LXC around it, if it does. `meaning` says which.
fn rights(engine: Option<&Value>, member: &str, meaning: &str) -> Markup {
    let rights = engine.and_then(|engine| engine.get(member)?.as_array());
    let rights: Vec<&str> = rights
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    html! {
        @if !rights.is_empty() {
            p class="warn" {
                (meaning) " "
                @for (index, right) in rights.iter().take(MAX_RIGHTS).enumerate() {
                    @if index > 0 { "; " }
                    (name(right))
                }
                @if rights.len() > MAX_RIGHTS { " +" (rights.len() - MAX_RIGHTS) }
            }
        }
    }
}

fn text<'a>(value: Option<&'a Value>, member: &str) -> Option<&'a str> {
    value?.get(member)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_of_docker_shows_what_its_engine_says() {
        let container = json!({
            "status": "running", "stale": true, "engine": {
                "image": "<b>:1", "health": { "status": "unhealthy", "failing_streak": 3 }, "exit_code": 1,
                "compose": { "project": "media", "service": "web" }, "host_rights": ["it is privileged"]
            }
        });
        let page = container_head("docker:web", &container, None).into_string();
        for part in [
            "docker:web",
            "running",
            "unhealthy",
            texts::STALE,
            "Docker",
            "&lt;b&gt;:1",
            "media",
            "it is privileged",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(
            !page.contains("<b>") && !page.contains(texts::EXIT_CODE),
            "{page}"
        );
    }

    #[test]
    fn a_container_of_lxc_has_no_engine_and_a_stopped_one_shows_how_it_ended() {
        let page = container_head("web", &json!({ "status": "running" }), None).into_string();
        assert!(
            page.contains("LXC") && !page.contains(texts::IMAGE),
            "{page}"
        );
        let ended = |engine: Value| {
            let container = json!({ "status": "stopped", "engine": engine });
            container_head("podman:web", &container, None).into_string()
        };
        assert!(ended(json!({ "exit_code": 137 })).contains("137"));
        assert!(!ended(json!({ "exit_code": 0 })).contains(texts::EXIT_CODE));
        assert!(
            ended(json!({ "exit_code": 137, "oom_killed": true })).contains(texts::OUT_OF_MEMORY)
        );
    }

    #[test]
    fn a_status_has_its_time_of_the_engine_or_else_of_the_log() {
        let running =
            json!({ "status": "running", "engine": { "started_ms": 5, "finished_ms": 3 } });
        let stopped =
            json!({ "status": "stopped", "engine": { "started_ms": 5, "finished_ms": 9 } });
        assert_eq!(since(&running, Some(1)), Some(5));
        assert_eq!(since(&stopped, Some(1)), Some(9));
        assert_eq!(since(&json!({ "status": "running" }), Some(1)), Some(1));
        assert_eq!(
            container_path("docker:jellyfin@media"),
            "/owner/containers/docker%3Ajellyfin%40media"
        );
    }

    #[test]
    fn only_a_target_with_a_runtime_has_an_icon() {
        for (target_text, has_icon) in [
            ("docker:web", true),
            ("podman:web", true),
            ("web", false),
            ("/etc/hosts", false),
            ("docker:<script>", false),
        ] {
            let shown = target(target_text).into_string();
            assert_eq!(shown.contains("<svg"), has_icon, "{shown}");
            assert!(!shown.contains("<script>"), "{shown}");
        }
    }
}
