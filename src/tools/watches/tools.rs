//! `watch_*`: conditions that the server checks for an agent.
//!
//! They are here and not in the toolsets, because watches are stored in the vault, which toolsets cannot import.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::{MAX_EVERY_S, MAX_FOR_S, MIN_EVERY_S, WatchKind, WatchSpec};
use super::permission::{CREATE, check_permission};
use super::phase::{WatchReading, WatchState};
use super::probes::WatchProbes;
use super::view::{OwnWatches, WatchView};
use crate::toolsets::{BoundedNumber, failed};
use gatewren_base::config::LiveSettings;
use gatewren_base::sys::exact_line;
use gatewren_gate::auth::Agents;
use gatewren_host::backends::ContainerRef;
use gatewren_store::vault::{
    AddedWatch, MAX_WATCHES, MAX_WATCHES_OF_AGENT, NewWatch, StoredWatch, Vault, VaultError,
    WatchRef,
};
use gatewren_wire::registry::{Answer, Cx, Interruption, Result, Risk, Scope, ToolError, Toolset};

/// The state of the tools.
pub struct WatchTools {
    /// The watches.
    pub vault: Vault,
    /// The settings, which define the spaces.
    pub live: LiveSettings,
    /// What checks read.
    pub probes: Arc<WatchProbes>,
}

/// The toolset.
pub fn tools(tools: Arc<WatchTools>) -> Toolset<WatchTools> {
    Toolset::new(tools)
        .with_name("watches")
        .answering("watch_create", Risk::Write, create)
        .reaches_other_machines()
        .about(Scope::HostOr("container"))
        .titled("Watch something")
        .answering("watch_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List your watches")
        .answering("watch_pause", Risk::Write, pause)
        .about(Scope::Within)
        .titled("Pause or resume a watch")
        .answering("watch_delete", Risk::Write, delete)
        .about(Scope::Within)
        .titled("Delete a watch")
}

/// Have the server check a condition from now on, and notify the owner once when it holds and once when it ends, also
/// subscribers of `gatewren:///public/notifications`. `watch_list` shows what was found, `watch_delete` ends one.
///
/// At most 32; they end with your access.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "CreateFields")]
#[schemars(with = "CreateFields")]
struct Create {
    name: String,
    spec: WatchSpec,
}

/// The arguments of `watch_create`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateFields {
    /// Your name for it.
    name: WatchName,
    /// Fires when: container is not running; unit failed or inactive; port closed/open; http fails; disk too full; too
    /// hot; certificate expires soon; backup too old.
    kind: WatchKind,
    /// For container; optional for unit, port, backup.
    container: Option<ContainerRef>,
    /// Unit; port or host:port; URL; mount path; sensor; host:port (default: this server); directory.
    target: Option<String>,
    /// http: seconds; disk: percent; temperature: Celsius; certificate: days; backup: hours.
    limit: Option<u32>,
    /// Seconds it must hold.
    #[serde(default)]
    for_s: BoundedNumber<0, MAX_FOR_S, 60>,
    /// Seconds between checks.
    #[serde(default)]
    every_s: BoundedNumber<MIN_EVERY_S, MAX_EVERY_S, 30>,
}

/// The maximum length of a watch's name; a longer one is refused.
const MAX_NAME: usize = 60;

/// A watch's name.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$"))]
struct WatchName(String);

impl TryFrom<String> for WatchName {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= MAX_NAME && text.chars().all(is_fit) {
            return Ok(Self(text));
        }
        Err(
            "must have 1 to 60 letters, digits, spaces, dots, dashes or underscores, and begin with a letter or digit",
        )
    }
}

impl TryFrom<CreateFields> for Create {
    type Error = super::condition::InvalidWatch;

    fn try_from(fields: CreateFields) -> std::result::Result<Self, Self::Error> {
        let spec = WatchSpec {
            kind: fields.kind,
            container: fields.container,
            target: fields.target,
            limit: fields.limit,
            for_s: fields.for_s.get(),
            every_s: fields.every_s.get(),
            paused: false,
        };
        spec.check()?;
        Ok(Self {
            name: fields.name.0,
            spec,
        })
    }
}

async fn create(tools: Arc<WatchTools>, asked: Create, cx: Cx) -> Result<Answer> {
    let Create { name, spec } = asked;
    let caller = cx.caller();
    if let Some(container) = &spec.container {
        let exists = tools
            .probes
            .check_container(container, &caller.reach, cx.reference());
        exists.await.map_err(failed)?;
    }
    let agents = Agents::new(tools.vault.clone(), tools.live.clone());
    let agents = agents.map_err(|cause| unusable(&cause))?;
    let who = agents.present(&caller.agent).map_err(|_| {
        ToolError::new("Only an agent with a token can have watches. Nothing was created.")
    })?;
    check_permission(&who, &spec)
        .map_err(|why| ToolError::new(format!("{why}. Nothing was created.")))?;
    let reading = tools
        .probes
        .read(&spec, &caller.reach, cx.reference())
        .await;
    if let WatchReading::Unknown(why) | WatchReading::Stopped(why) = &reading {
        let words = format!("It cannot be checked: {why}. Nothing was created.");
        return Err(ToolError::new(words).into());
    }
    let mut state = WatchState::default();
    // The monitor checks it again at once and sends the message; this only fills the answer.
    let shown = {
        let mut shown = state.clone();
        let _ = shown.advance(reading, u64::MAX, gatewren_base::sys::now_ms());
        shown
    };
    state.seen.clone_from(&shown.seen);
    let new = NewWatch {
        agent: caller.agent.to_string(),
        name,
        spec: as_json(&spec)?,
        state: as_json(&state)?,
    };
    let added = tools.vault.watches().add(new).await;
    let watch = added_watch(added.map_err(|cause| unusable(&cause))?)?;
    let watch = StoredWatch {
        state: as_json(&shown)?,
        ..watch
    };
    Ok(Answer::data(&WatchView::of(&watch))?)
}

fn added_watch(added: AddedWatch) -> Result<StoredWatch> {
    let words = match added {
        AddedWatch::Added(watch) => return Ok(watch),
        AddedWatch::NameInUse => {
            "You have another watch of this name; watch_delete ends it. Nothing was created."
                .to_owned()
        }
        AddedWatch::TooManyOfAgent => format!(
            "You have {MAX_WATCHES_OF_AGENT} watches, which is the limit; watch_delete ends one. Nothing was created."
        ),
        AddedWatch::TooMany => format!(
            "All agents together have {MAX_WATCHES} watches, which is the limit. Nothing was created."
        ),
    };
    Err(ToolError::new(words).into())
}

/// List your watches, oldest first: each condition in words, its phase, and what the last check found. `watch_create`
/// adds one, `notification_list` shows the messages.
///
/// Watches of other agents are not shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

async fn list(tools: Arc<WatchTools>, List {}: List, cx: Cx) -> Result<Answer> {
    let own = OwnWatches::of(&tools.vault, &cx.caller().agent);
    Ok(Answer::data(&own.map_err(|cause| unusable(&cause))?)?)
}

/// Pause one of your watches, so that nothing is checked or sent about it, or resume it with `paused` false: it is then
/// checked at once. Returns the watch; `watch_delete` ends it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// The watch's name, as you gave it.
    name: WatchName,
    /// Whether it is paused.
    #[serde(default = "yes")]
    paused: bool,
}

fn yes() -> bool {
    true
}

async fn pause(tools: Arc<WatchTools>, asked: Pause, cx: Cx) -> Result<Answer> {
    let (WatchName(name), paused) = (asked.name, asked.paused);
    let table = tools.vault.watches();
    let own = table.list_of(&cx.caller().agent);
    let mut own = own.map_err(|cause| unusable(&cause))?.into_iter();
    let watch = own
        .find(|watch| watch.name == name)
        .ok_or_else(|| absent(&name))?;
    let spec: WatchSpec = serde_json::from_str(&watch.spec).map_err(|_| unknown_version())?;
    let spec = as_json(&WatchSpec { paused, ..spec })?;
    let replaced = table.replace_spec(&watch, spec.clone()).await;
    if !replaced.map_err(|cause| unusable(&cause))? {
        return Err(absent(&name));
    }
    let watch = StoredWatch { spec, ..watch };
    Ok(Answer::data(&WatchView::of(&watch))?)
}

/// Delete one of your watches and return it as it was last; nothing is sent about it any more. `watch_list` lists
/// yours.
///
/// A watch that is not yours is not found.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delete {
    /// The watch's name, as you gave it.
    name: WatchName,
}

async fn delete(
    tools: Arc<WatchTools>,
    Delete {
        name: WatchName(name),
    }: Delete,
    cx: Cx,
) -> Result<Answer> {
    let watch = WatchRef::Name {
        agent: cx.caller().agent.to_string(),
        name: name.clone(),
    };
    let removed = tools.vault.watches().remove(watch).await;
    let removed = removed.map_err(|cause| unusable(&cause))?;
    let view = removed.as_ref().and_then(WatchView::of);
    Ok(Answer::data(&view.ok_or_else(|| absent(&name))?)?)
}

/// The same error for a watch that never existed and for one of another agent.
fn absent(name: &str) -> Interruption {
    let error = ToolError::new(format!("You have no watch of the name {name:?}"));
    error.hint("watch_list lists your watches.").into()
}

fn unknown_version() -> ToolError {
    ToolError::new(
        "A newer gatewren wrote this watch, so it cannot be changed. watch_delete ends it.",
    )
}

fn as_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|cause| ToolError::new(format!("cannot be written as JSON: {cause}")).into())
}

fn unusable(cause: &VaultError) -> Interruption {
    tracing::error!(%cause, "cannot use the watches in the vault");
    ToolError {
        retry: true,
        ..ToolError::new(
            "The watches cannot be read or written at the moment. Nothing was changed.",
        )
    }
    .into()
}

/// Describes the watch that a call of `watch_create` creates, on one line, for the owner who decides about it. `None` for
/// other tools, and for arguments that the tool refuses.
pub fn watch_words(tool: &str, arguments: &Map<String, Value>) -> Option<String> {
    if tool != CREATE.name {
        return None;
    }
    let asked: Create = serde_json::from_value(Value::Object(arguments.clone())).ok()?;
    Some(exact_line(&asked.spec.plan_words()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_proposed_watch_is_described_with_what_is_checked_and_who_is_notified() {
        let arguments =
            json!({ "name": "n", "kind": "container", "container": "web", "for_s": 120 });
        let words = watch_words("watch_create", arguments.as_object().unwrap()).unwrap();
        assert_eq!(
            words,
            "Check every 30 s whether container web is not running. Once that has held for 120 s, notify the owner and \
             the agents that may see container web, and again when it ends. This goes on until the watch is deleted or \
             its agent's access ends."
        );
        let refused = json!({ "name": "n", "kind": "container" });
        assert_eq!(
            watch_words("watch_create", refused.as_object().unwrap()),
            None
        );
        assert_eq!(
            watch_words("watch_delete", arguments.as_object().unwrap()),
            None
        );
    }
}
