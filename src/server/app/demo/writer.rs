//! Writes the invented past of a demo into its stores, through the same writers as a server, with a clock set back.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::made_up::{MadeUpAlert, MadeUpContainer, MadeUpRequest, MadeUpServer};
use super::past::{PastCall, PastEvent, PastEventKind, events};
use gatewren_base::config::Reach;
use gatewren_base::sys::{PastClock, random_bytes};
use gatewren_store::state::{
    Author, KeptNotification, Notice, NotificationChange, NotificationReader, Notifications,
    Pointer, State,
};
use gatewren_store::vault::{
    AuditEntry, AuditId, AuditOutcome, Decision, NewAgent, NewChange, NewWatch, OWNER,
    OpenChangeLimits, ProposalOutcome, Vault,
};

/// Why the past could not be written; the start fails with it.
type WriteError = Box<dyn std::error::Error + Send + Sync>;

/// The address of the invented agents, from the block for documentation (RFC 5737).
const ADDRESS: &str = "192.0.2.20";

/// The space of the invented agents: the whole server.
const SPACE: &str = "*";

/// The first observation of the host is before everything else.
const FIRST_LOOK_MS: u64 = 8 * 24 * 3_600_000;

const ROOM: OpenChangeLimits = OpenChangeLimits {
    per_agent: 16,
    total: 64,
};

/// Writes the past of a demo.
pub struct PastWriter<'a> {
    vault: &'a Vault,
    state: &'a State,
    notifications: Notifications,
    clock: PastClock,
    /// The ids of the agents by name.
    agents: HashMap<String, String>,
}

impl<'a> PastWriter<'a> {
    /// Begins in empty stores.
    pub fn begin(vault: &'a Vault, state: &'a State) -> Self {
        Self {
            vault,
            state,
            notifications: Notifications::new(state.clone()),
            clock: PastClock::begin(),
            agents: HashMap::new(),
        }
    }

    /// Writes everything that happened before `now_ms`.
    ///
    /// # Errors
    /// When a store cannot be written.
    pub async fn write(mut self, made_up: &MadeUpServer, now_ms: u64) -> Result<(), WriteError> {
        self.add_agents(made_up).await?;
        self.clock.set(now_ms.saturating_sub(FIRST_LOOK_MS));
        let containers = made_up.containers.iter();
        let first: serde_json::Map<String, Value> = containers
            .map(|(name, container)| (name.clone(), first_facts(name, container)))
            .collect();
        let server = made_up.server.clone();
        self.put(&["serverInfo"], server, Author::observer())
            .await?;
        self.put(&["packageData"], first.into(), Author::observer())
            .await?;
        for event in events(made_up, now_ms) {
            self.write_event(event).await?;
        }
        self.mark_seen(made_up).await?;
        for agent in &made_up.agents {
            self.vault
                .agents()
                .touch(self.id_of(&agent.name), agent.last);
        }
        for watch in &made_up.watches {
            let new = NewWatch {
                agent: self.id_of(&watch.agent).to_owned(),
                name: watch.name.clone(),
                spec: watch.spec.to_string(),
                state: watch.state.to_string(),
            };
            self.vault.watches().add(new).await?;
        }
        // What is queued has its place on the disk before the server reads it.
        Ok(self.vault.probe().await?)
    }

    async fn add_agents(&mut self, made_up: &MadeUpServer) -> Result<(), WriteError> {
        for agent in &made_up.agents {
            self.clock.set(agent.created);
            let new = NewAgent {
                name: agent.name.clone(),
                // No token has this hash: these agents cannot sign in.
                token_sha256: random_bytes()?,
                preset: agent.policy.parse()?,
                overrides: "{}".to_owned(),
                space: Some(SPACE.to_owned()),
                expires_ms: None,
            };
            let id = self.vault.agents().add(new).await?.id;
            self.agents.insert(agent.name.clone(), id);
        }
        Ok(())
    }

    fn id_of(&self, name: &str) -> &str {
        self.agents.get(name).map_or("", String::as_str)
    }

    async fn write_event(&self, event: PastEvent<'_>) -> Result<(), WriteError> {
        self.clock.set(event.at_ms);
        match event.what {
            PastEventKind::Call(call) => self.write_call(&call).await,
            PastEventKind::Status {
                container,
                status,
                call,
            } => self.write_status(container, status, call).await,
            PastEventKind::Request(request) => self.write_request(request).await,
            PastEventKind::Alert(alert) => self.write_alert(alert).await,
        }
    }

    async fn write_call(&self, call: &PastCall<'_>) -> Result<(), WriteError> {
        let id = self.begin_call(call, "allow").await?;
        let (outcome, error) = match (call.refused, call.failed) {
            (Some(why), _) => ("refused", Some(why)),
            (None, Some(why)) => ("failed", Some(why)),
            (None, None) => ("ok", None),
        };
        let outcome = AuditOutcome {
            outcome,
            duration_ms: call.duration_ms,
            revision_before: None,
            revision: None,
            error,
        };
        Ok(self.vault.audit().outcome(&id, outcome)?)
    }

    /// Queues the intent of a call. Its row is written before any later one, so nothing waits for it here.
    async fn begin_call(&self, call: &PastCall<'_>, decision: &str) -> Result<AuditId, WriteError> {
        let arguments = Value::Object(call.arguments.clone());
        let named = |key: &str| arguments.get(key)?.as_str();
        let target = named("container").or_else(|| named("unit"));
        let entry = AuditEntry {
            agent: self.id_of(call.agent),
            token: None,
            space: Some(SPACE),
            session: None,
            request: None,
            address: ADDRESS,
            tool: call.tool,
            risk: call.risk,
            arguments: &arguments,
            reason: call.reason,
            target,
            mode: Some(decision),
            decision: call.refused.map_or(decision, |_| "deny"),
            change: None,
        };
        let (id, _written) = self.vault.audit().queue_intent(entry).await?;
        Ok(id)
    }

    async fn write_status(
        &self,
        container: &str,
        status: &str,
        call: Option<PastCall<'_>>,
    ) -> Result<(), WriteError> {
        let place = ["packageData", container, "status"];
        let Some(call) = call else {
            return self.put(&place, status.into(), Author::observer()).await;
        };
        let id = self.begin_call(&call, "allow").await?;
        let before = self.state.document().revision;
        let author = Author::observer().because(id.as_str());
        self.put(&place, status.into(), author).await?;
        let outcome = AuditOutcome {
            outcome: "ok",
            duration_ms: call.duration_ms,
            revision_before: Some(before),
            revision: Some(self.state.document().revision),
            error: None,
        };
        Ok(self.vault.audit().outcome(&id, outcome)?)
    }

    async fn write_request(&self, request: &MadeUpRequest) -> Result<(), WriteError> {
        let call = PastCall {
            agent: &request.agent,
            tool: &request.tool,
            risk: &request.risk,
            arguments: request.arguments.clone(),
            reason: Some(&request.reason),
            refused: None,
            failed: None,
            duration_ms: 4,
        };
        let id = self.begin_call(&call, "propose").await?;
        let target = request.target.iter();
        let rests_on = target.map(|target| place(&["packageData", target]).to_string());
        let new = NewChange {
            agent: self.id_of(&request.agent).to_owned(),
            space: SPACE.to_owned(),
            tool: request.tool.clone(),
            target: request.target.clone(),
            arguments: request.arguments.clone(),
            rests_on: rests_on.collect(),
            revision: self.state.document().revision,
            reason: Some(request.reason.clone()),
            expires_ms: request.expires,
            proposed_in: Some(id.to_string()),
        };
        let added = self.vault.changes().add(new, ROOM).await?;
        let outcome = AuditOutcome {
            outcome: "proposed",
            duration_ms: call.duration_ms,
            revision_before: None,
            revision: None,
            error: None,
        };
        self.vault.audit().outcome(&id, outcome)?;
        if let (ProposalOutcome::New(change), Some(note)) = (added, &request.rejected) {
            let decision = Decision {
                by: OWNER.to_owned(),
                note: Some(note.clone()),
            };
            self.vault.changes().reject(&change.id, decision).await?;
        }
        Ok(())
    }

    async fn write_alert(&self, alert: &MadeUpAlert) -> Result<(), WriteError> {
        let notice = Notice {
            container: alert.container.clone(),
            level: match alert.level.as_str() {
                "error" => "error",
                "warning" => "warning",
                _ => "info",
            },
            title: alert.title.clone(),
            message: alert.message.clone(),
            change: None,
        };
        self.notifications.add(&Author::observer(), notice).await?;
        Ok(())
    }

    async fn mark_seen(&self, made_up: &MadeUpServer) -> Result<(), WriteError> {
        let reach = Reach::everything();
        let reader = NotificationReader {
            agent: "",
            reach: &reach,
        };
        let is_seen = |kept: &KeptNotification| {
            let title = kept.value.get("title").and_then(Value::as_str);
            let mut alerts = made_up.alerts.iter();
            alerts.any(|alert| alert.seen && title == Some(&*alert.title))
        };
        let seen = NotificationChange::Seen(true);
        let author = Author::observer();
        let marked = self.notifications.change(&author, reader, seen, is_seen);
        marked.await?;
        Ok(())
    }

    async fn put(&self, keys: &[&str], value: Value, author: Author) -> Result<(), WriteError> {
        self.state.put(&author, &place(keys), Some(value)).await?;
        Ok(())
    }
}

/// The place below `/public`.
fn place(keys: &[&str]) -> Pointer {
    let top = Pointer::root().child("public");
    keys.iter().fold(top, |at, key| at.child(*key))
}

/// The facts of a container before its first event.
fn first_facts(name: &str, container: &MadeUpContainer) -> Value {
    let mut facts = container.facts.clone();
    if let Some(members) = facts.as_object_mut() {
        members.insert("name".to_owned(), json!(name));
        if let Some(event) = container.events.first() {
            let before = if event.status == "running" {
                "stopped"
            } else {
                "running"
            };
            members.insert("status".to_owned(), json!(before));
        }
    }
    facts
}
