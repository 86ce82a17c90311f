//! `session_list` and `session_kill`: tools to manage the sessions that an agent's clients have left open.
//!
//! They are here and not in the toolsets, because sessions belong to the transport, which toolsets cannot import.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use gatewren_wire::registry::{Cx, Result, Risk, Scope, ToolError, Toolset};

/// The maximum number of sessions in a call, more than an agent has by default; a longer list is refused.
const MAX_ENDED: usize = 64;

/// The open sessions, implemented by the table that holds them.
pub trait OpenSessions: Send + Sync {
    /// The sessions of an agent.
    fn of_agent(&self, agent: &str) -> Vec<OpenSession>;

    /// Ends a session of an agent permanently, with all its calls in progress; returns whether it existed.
    fn end_of_agent<'a>(
        &'a self,
        agent: &'a str,
        name: Uuid,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// A session of a client of the revisions that have sessions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct OpenSession {
    /// Its name here, in the audit log and for `session_kill`. It is not the id that its client sends, and gives no
    /// access to it.
    #[schemars(with = "String")]
    pub session: Uuid,
    /// Whether this call belongs to it.
    pub current: bool,
    /// Whether a call or a stream of it is open.
    pub in_use: bool,
    /// Seconds since it was last used; absent while it is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
    /// The MCP revision of its client; absent if the client has not returned since the server started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// The table of sessions, which another module owns.
pub type OpenSessionTable = dyn OpenSessions;

/// The toolset.
pub fn session_tools(sessions: Arc<OpenSessionTable>) -> Toolset<SessionTools> {
    Toolset::new(Arc::new(SessionTools(sessions)))
        .with_name("access")
        .tool("session_list", Risk::Read, list)
        .about(Scope::Within)
        .titled("List my sessions")
        .startos("auth.session.list", &[])
        .tool("session_kill", Risk::Write, kill)
        .about(Scope::Within)
        .titled("End my sessions")
        .startos("auth.session.kill", &[("ids", "sessions")])
}

/// The state of the tools: the table of sessions.
pub struct SessionTools(Arc<OpenSessionTable>);

/// List the open sessions of your own clients, by name. `session_kill` ends one that was left open.
///
/// Sessions of other agents are not shown, and clients of the stateless revision have none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The sessions, sorted by name.
    sessions: Vec<OpenSession>,
}

async fn list(tools: Arc<SessionTools>, List {}: List, cx: Cx) -> Result<Listed> {
    let caller = cx.caller();
    let mut sessions = tools.0.of_agent(&caller.agent);
    sessions.sort();
    for session in &mut sessions {
        session.current = Some(session.session) == own(&cx);
    }
    Ok(Listed { sessions })
}

/// End sessions of your own clients, with all their calls in progress, and return which were ended. `session_list`
/// lists them.
///
/// Fails for the session of this call, which its client ends with DELETE.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Kill {
    /// The sessions' names, as `session_list` shows them.
    sessions: Vec<Name>,
}

/// A session's name.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^[0-9a-f-]{36}$"))]
struct Name(Uuid);

impl TryFrom<String> for Name {
    type Error = NoName;

    fn try_from(text: String) -> std::result::Result<Self, NoName> {
        let name = Uuid::parse_str(&text).map_err(|_| NoName)?;
        // Only the canonical form, because names are compared as they are shown.
        (name.to_string() == text)
            .then_some(Self(name))
            .ok_or(NoName)
    }
}

/// The text is not a session's name.
struct NoName;

impl fmt::Display for NoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be a session's name, as session_list shows it")
    }
}

#[derive(Serialize, JsonSchema)]
struct Ended {
    /// Those that were ended, in the order of the call.
    #[schemars(with = "Vec<String>")]
    ended: Vec<Uuid>,
    /// Those that were not found: already ended, or never yours.
    #[schemars(with = "Vec<String>")]
    not_found: Vec<Uuid>,
}

async fn kill(tools: Arc<SessionTools>, Kill { sessions }: Kill, cx: Cx) -> Result<Ended> {
    if sessions.len() > MAX_ENDED {
        let words =
            format!("At most {MAX_ENDED} sessions can be ended in one call. Nothing was done.");
        return Err(ToolError::new(words).into());
    }
    if sessions.iter().any(|Name(name)| Some(*name) == own(&cx)) {
        let words = "This call comes from one of these sessions. Nothing was done.";
        let hint = "A client ends its own session with DELETE; leave it out and call again.";
        return Err(ToolError::new(words).hint(hint).into());
    }
    let mut done = Ended {
        ended: Vec::new(),
        not_found: Vec::new(),
    };
    for Name(name) in sessions {
        let there_was = tools.0.end_of_agent(&cx.caller().agent, name).await;
        if there_was {
            done.ended.push(name);
        } else if !done.ended.contains(&name) {
            done.not_found.push(name);
        }
    }
    Ok(done)
}

/// The session that the call belongs to.
fn own(cx: &Cx) -> Option<Uuid> {
    let name = cx.caller().session.as_deref()?;
    Uuid::parse_str(name).ok()
}
