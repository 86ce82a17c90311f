//! Runs approved changes: each at most once and exactly as approved, regardless of the approver and the time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::inbox::Inbox;
use super::precondition::{newest_change_of_precondition, rests_on};
use crate::dispatch::call::{Call, ToolRequest};
use crate::dispatch::elicitation::surroundings;
use crate::dispatch::engine::Engine;
use crate::dispatch::host_rights::{is_on_host, judge_call};
use crate::dispatch::in_flight::DrainGuard;
use crate::dispatch::included::with_included;
use crate::dispatch::record::Record;
use crate::dispatch::reference;
use crate::dispatch::schedules::check::with_check;
use crate::dispatch::tasks::table::bounded_result;
use crate::dispatch::unattended::run_while_admitted;
use crate::dispatch::vault_worker::{RunningItems, VaultWorker, run_until_stop};
use gatewren_base::sys::{Requester, now_ms};
use gatewren_gate::auth::{AuthError, Principal};
use gatewren_gate::policy::{Verdict, judge_approved};
use gatewren_store::vault::{Change, ChangeEnd, StartedChange, Vault, VaultError};
use gatewren_wire::protocol::InputAnswers;
use gatewren_wire::registry::{Answer, Tool};

/// The inbox is checked at this interval even without a notification, because an agent's expiry sends none.
const LOOK: Duration = Duration::from_mins(1);

/// The delay before a change that cannot run at the moment is retried.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum length of the failure message that is stored with a result, in characters.
const MAX_WORDS: usize = 500;

/// Marks the changes that a previous server left running: their outcome is unknown. Must be called before any
/// change is started.
pub async fn end_abandoned_changes(vault: &Vault) -> Result<(), VaultError> {
    let ended = vault.changes().end_abandoned().await?;
    if ended > 0 {
        tracing::warn!(
            ended,
            "approved changes were running when the previous server ended; their outcome is unknown"
        );
    }
    Ok(())
}

/// The worker that runs approved changes.
struct Executor {
    engine: Arc<Engine>,
    vault: Vault,
}

/// A running change. Changes about one target never overlap.
struct RunningChange {
    id: String,
    target: Option<String>,
}

impl Engine {
    /// Runs approved changes, expires old ones, and withdraws those of revoked agents, for as long as it runs. It
    /// starts none after the server begins to stop.
    pub async fn run_approved(self: Arc<Self>) {
        let (Some(vault), true) = (self.vault.clone(), self.inbox.is_some()) else {
            return;
        };
        let executor = Executor {
            engine: self.clone(),
            vault: vault.clone(),
        };
        run_until_stop(&self, &vault, executor).await;
    }
}

impl VaultWorker for Executor {
    type Item = RunningChange;

    const READS: &'static str = "the inbox";

    const LOOK: Duration = LOOK;

    async fn start_due(
        &mut self,
        running: &mut RunningItems<RunningChange>,
    ) -> Result<Duration, VaultError> {
        self.withdraw_for_revoked().await?;
        let next = self.vault.changes().sweep().await?;
        for change in self.vault.changes().approved()? {
            let busy = running.any(|one| {
                one.id == change.id || one.target.is_some() && one.target == change.target
            });
            if !busy && running.has_room() {
                let item = RunningChange {
                    id: change.id.clone(),
                    target: change.target.clone(),
                };
                running.start(item, run_one(self.engine.clone(), change));
            }
        }
        let left = next.map(|next| Duration::from_millis(next.saturating_sub(now_ms()) + 1));
        Ok(left.map_or(LOOK, |left| left.min(LOOK)))
    }
}

impl Executor {
    async fn withdraw_for_revoked(&self) -> Result<(), VaultError> {
        let Some(inbox) = &self.engine.inbox else {
            return Ok(());
        };
        for agent in self.vault.changes().open_agents()? {
            if let Err(error @ (AuthError::Revoked | AuthError::Unknown)) =
                inbox.agents.present(&agent)
            {
                let words = format!("Its agent has no access: {error}.");
                let withdrawn = self.vault.changes().withdraw_all(&agent, words).await?;
                tracing::info!(agent, withdrawn, "withdrew the changes of a revoked agent");
            }
        }
        Ok(())
    }
}

/// Runs one approved change, if it may still run; if its outcome cannot be recorded, the error is logged.
async fn run_one(engine: Arc<Engine>, change: Change) {
    // Counted before `stop` is read: either the drain waits for this change, or the change sees `stop`.
    let in_flight = DrainGuard::begin(&engine.in_flight);
    if *engine.stop.borrow() {
        return;
    }
    let id = change.id.clone();
    let attempted = attempt(&engine, change).await;
    drop(in_flight);
    let blocked = match attempted {
        Ok(blocked) => blocked,
        Err(cause) => {
            tracing::error!(%cause, change = id, "cannot update an approved change");
            true
        }
    };
    if blocked {
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Runs the change or records why it does not run. Returns whether to retry.
async fn attempt(engine: &Arc<Engine>, change: Change) -> Result<bool, VaultError> {
    let (Some(inbox), Some(vault)) = (&engine.inbox, &engine.vault) else {
        return Ok(false);
    };
    let changes = vault.changes();
    let (who, tool) = match admit_agent(engine, inbox, &change) {
        Ok(admitted) => admitted,
        Err(Hindrance::Passing) => return Ok(true),
        Err(Hindrance::Lasting(words)) => {
            changes.refuse(&change.id, words).await?;
            return Ok(false);
        }
    };
    let arguments = change.proven_arguments().unwrap_or_default();
    let now = rests_on(&inbox.state, &who, &tool, &arguments);
    let modified = newest_change_of_precondition(&inbox.state, &change, &now);
    if let Some(revision) = modified.filter(|_| !now.is_empty()) {
        let words = format!(
            "The target of this change was modified after the proposal (last at state revision {revision}). \
             Nothing was done; the owner is asked again."
        );
        changes.ask_again(&change.id, revision, words).await?;
        return Ok(false);
    }
    let Some(begun) = changes.begin(&change.id).await? else {
        return Ok(false);
    };
    let end = carry_out(engine, &who, tool, &begun).await;
    let Change { id, tool, .. } = begun.change();
    tracing::info!(
        change = id,
        applied = end.applied,
        "approved {tool} has ended"
    );
    changes.end(begun, end).await?;
    Ok(false)
}

/// Why an approved change cannot start.
enum Hindrance {
    /// A temporary reason: the change stays approved.
    Passing,
    /// A permanent reason, in a sentence for the owner and the agent.
    Lasting(String),
}

/// Returns the current principal of the agent and the tool, if the agent may still make this call.
fn admit_agent(
    engine: &Engine,
    inbox: &Inbox,
    change: &Change,
) -> Result<(Principal, Arc<Tool>), Hindrance> {
    let who = inbox
        .agents
        .present(&change.agent)
        .map_err(|error| match error {
            AuthError::Unavailable => Hindrance::Passing,
            error => Hindrance::Lasting(format!(
                "Its agent has no access: {error}. Nothing was done."
            )),
        })?;
    let tool = engine.catalog.tool(&change.tool).cloned();
    let denied = || {
        let words = "By now its agent's policy denies this. Nothing was done.";
        Hindrance::Lasting(words.to_owned())
    };
    let tool = tool.ok_or_else(|| {
        let words = "This tool is no longer available; /etc/gatewren/helper.toml may disable it. Nothing was done.";
        Hindrance::Lasting(words.to_owned())
    })?;
    // Arguments that differ from the proposed ones are detected when the change begins.
    let verdict = change
        .proven_arguments()
        .map(|arguments| judge_call(engine, &who, &tool, &arguments));
    match verdict {
        Some(Verdict::Deny) => Err(denied()),
        _ => Ok((who, tool)),
    }
}

/// Runs a change that has begun, and records it.
async fn carry_out(
    engine: &Arc<Engine>,
    who: &Principal,
    tool: Arc<Tool>,
    begun: &StartedChange,
) -> ChangeEnd {
    let arguments = begun.change().proven_arguments().unwrap_or_default();
    let verdict = judge_approved(who, &tool, begun);
    let call = Call::unattended(who);
    let cx = surroundings(&call, reference::next(), InputAnswers::default());
    let cx = cx.with_host_rights(is_on_host(engine, &tool, &arguments));
    let approval = Some(begun.change().id.clone());
    let cx = with_check(cx, engine, who, &tool, approval);
    let cx = with_included(cx, engine, who, &tool);
    let request = ToolRequest {
        tool,
        arguments,
        reason: begun.change().reason.clone(),
        cx,
    };
    let record = match Record::begin(engine, &call, &request, &verdict).await {
        Ok(record) => record,
        Err(error) => {
            let words = format!(
                "The audit record could not be written ({}). Nothing was done.",
                error.message
            );
            return failed(words, None);
        }
    };
    let ran_in = record.audit_id();
    let Verdict::Approved(permit, _) = verdict else {
        let words = "By now its agent's policy denies this. Nothing was done.";
        record.refuse(words);
        return failed(words.to_owned(), ran_in);
    };
    // The owner requested this run, so it does not queue behind the agent's own calls.
    let answer = run_while_admitted(engine, who, request, permit, Requester::Owner).await;
    end_of(engine, answer, record)
}

fn end_of(
    engine: &Engine,
    answer: Result<(Answer, Option<u64>), String>,
    record: Record,
) -> ChangeEnd {
    let ran_in = record.audit_id();
    let (answer, revision) = match answer {
        Ok(answered) => answered,
        Err(words) => {
            record.fail(&words);
            return failed(words, ran_in);
        }
    };
    let applied = !answer.failed;
    record.end_with(&answer, revision);
    let result = engine.complete_for_storage(&answer.into_result());
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    let words = text.map(|text| text.chars().take(MAX_WORDS).collect());
    ChangeEnd {
        applied,
        words: words.filter(|_| !applied),
        result: Some(bounded_result(result).to_string()),
        ran_in,
    }
}

fn failed(words: String, ran_in: Option<String>) -> ChangeEnd {
    ChangeEnd {
        applied: false,
        words: Some(words),
        result: None,
        ran_in,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;
    use tokio::sync::watch;
    use tokio::task::JoinHandle;

    use gatewren_gate::policy::judge;

    use super::super::executor::*;
    use super::super::inbox::InboxLimits;
    use super::super::propose::{Proposal, propose};
    use crate::dispatch::tasks::table::TaskLimits;
    use gatewren_base::config::{Policy, Preset, Settings, Space, Spaces};
    use gatewren_base::sys::Scratch;
    use gatewren_gate::auth::{AgentSpec, Agents, add_agent};
    use gatewren_store::state::{Author, Pointer, State};
    use gatewren_store::vault::{
        Agent, ChangeStatus, Decision, DecisionOutcome, GrantBound, NewGrant, OpenChangeLimits,
    };
    use gatewren_wire::protocol::Implementation;
    use gatewren_wire::registry::{Catalog, Cx, Result as ToolResult, Risk, Scope, Toolset};

    /// Restarts nothing.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Restart {
        /// The container's name.
        #[expect(dead_code, reason = "only its presence counts")]
        container: String,
    }

    async fn restart(runs: Arc<AtomicUsize>, _: Restart, _: Cx) -> ToolResult<Answer> {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(Answer::text("restarted"))
    }

    struct House {
        _scratch: Scratch,
        vault: Vault,
        state: State,
        engine: Arc<Engine>,
        agent: Agent,
        runs: Arc<AtomicUsize>,
        stop: watch::Sender<bool>,
    }

    /// An agent that may propose disruptive calls, in a space with the container `web`.
    async fn fixture() -> House {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let state = State::open(&scratch.join("state.db")).unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let mut catalog = Catalog::new(Implementation {
            name: "t".into(),
            title: None,
            version: "1".into(),
            profile: None,
        });
        let tools = Toolset::new(runs.clone())
            .answering("restart", Risk::Disrupt, restart)
            .about(Scope::Container("container"));
        catalog.add(tools).unwrap();
        let media = Space {
            containers: vec!["web".parse().unwrap()],
            host: false,
        };
        let spaces = Spaces::from([("media".to_owned(), media)]);
        let settings = Settings {
            spaces,
            ..Settings::default()
        };
        let agents = Agents::new(vault.clone(), settings.into()).unwrap();
        let limits = InboxLimits {
            expires: Duration::from_hours(1),
            room: OpenChangeLimits {
                per_agent: 8,
                total: 8,
            },
        };
        let admission = AgentSpec {
            name: "a".into(),
            policy: Policy::from(Preset::Operate),
            space: "media".into(),
            expires_ms: None,
        };
        let (agent, _) = add_agent(&vault, admission).await.unwrap();
        let stop = watch::Sender::new(false);
        let kept = Some(vault.clone());
        let engine = Engine::new(catalog, kept, &[0; 32], stop.subscribe(), TaskLimits::TWO);
        let inbox = Inbox::new(agents, state.clone(), limits);
        House {
            _scratch: scratch,
            engine: Arc::new(engine.with_inbox(inbox)),
            vault,
            state,
            agent,
            runs,
            stop,
        }
    }

    impl House {
        fn who(&self) -> Principal {
            let inbox = self.engine.inbox.as_ref().unwrap();
            inbox.agents.present(&self.agent.id).unwrap()
        }

        async fn propose_change(&self) -> Change {
            let arguments = json!({ "container": "web" });
            let proposal = Proposal {
                tool: self.engine.catalog.tool("restart").unwrap(),
                arguments: arguments.as_object().unwrap().clone(),
                reason: Some("it hangs".into()),
                proposed_in: None,
            };
            propose(&self.engine, &self.who(), proposal).await.unwrap()
        }

        /// Approves the change as it is now.
        async fn approve(&self, change: &Change) {
            let changes = self.vault.changes();
            let shown = changes.get(&change.id).unwrap().unwrap();
            let decision = Decision {
                by: "local:root".into(),
                note: None,
            };
            let outcome = changes.approve(&change.id, shown.binding(), decision).await;
            assert!(
                matches!(outcome, Ok(DecisionOutcome::Done(_))),
                "{outcome:?}"
            );
        }

        async fn put(&self, part: &str, value: &str) {
            let place = Pointer::parse(&format!("/public/packageData/web/{part}")).unwrap();
            let author = Author::observer();
            let put = self.state.put(&author, &place, Some(json!(value)));
            put.await.unwrap();
        }

        fn work(&self) -> JoinHandle<()> {
            tokio::spawn(self.engine.clone().run_approved())
        }

        /// Waits until a change has this status.
        async fn wait_for_status(&self, change: &Change, status: ChangeStatus) -> Change {
            let mut inbox_changes = self.vault.changes().watch_inbox();
            let found = async {
                loop {
                    inbox_changes.mark_unchanged();
                    let now = self.vault.changes().get(&change.id).unwrap().unwrap();
                    if now.status == status {
                        return now;
                    }
                    inbox_changes.changed().await.unwrap();
                }
            };
            let found = tokio::time::timeout(Duration::from_mins(2), found).await;
            found.unwrap_or_else(|_| panic!("not {status:?} in time"))
        }

        fn runs(&self) -> usize {
            self.runs.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn what_is_about_something_that_moved_is_asked_again_and_then_runs() {
        let fixture = fixture().await;
        fixture.put("status", "running").await;
        let change = fixture.propose_change().await;
        assert_eq!(change.target.as_deref(), Some("web"));
        fixture.put("status", "stopped").await;
        let worker = fixture.work();
        fixture.approve(&change).await;
        let asked = fixture
            .wait_for_status(&change, ChangeStatus::Pending)
            .await;
        let moved = asked.moved.unwrap();
        assert_eq!(moved, fixture.state.document().revision);
        assert!(
            asked.decided_by.is_none()
                && asked
                    .words
                    .unwrap()
                    .contains("was modified after the proposal")
        );
        assert_eq!(fixture.runs(), 0);
        fixture.approve(&change).await;
        fixture
            .wait_for_status(&change, ChangeStatus::Applied)
            .await;
        assert_eq!(fixture.runs(), 1);
        worker.abort();
    }

    #[tokio::test]
    async fn what_comes_and_goes_by_itself_does_not_hinder_it() {
        let fixture = fixture().await;
        fixture.put("status", "running").await;
        let change = fixture.propose_change().await;
        fixture.put("addresses", "10.0.3.5").await;
        let worker = fixture.work();
        fixture.approve(&change).await;
        let done = fixture
            .wait_for_status(&change, ChangeStatus::Applied)
            .await;
        assert!(done.result.unwrap().contains("restarted"));
        assert!(done.ran_in.is_some());
        worker.abort();
    }

    #[tokio::test]
    async fn what_its_agent_may_not_do_any_more_does_not_run() {
        type Narrowed = (fn(&mut Agent), &'static str);
        let narrowed: [Narrowed; 3] = [
            (|agent| agent.preset = Preset::Observe, "denies"),
            (
                |agent| agent.overrides = r#"{"tools":{"restart":"deny"}}"#.into(),
                "denies",
            ),
            (|agent| agent.space = Some("none".into()), "no space"),
        ];
        for (narrow, why) in narrowed {
            let fixture = fixture().await;
            let change = fixture.propose_change().await;
            fixture.approve(&change).await;
            let mut after = fixture.agent.clone();
            narrow(&mut after);
            let agents = fixture.vault.agents();
            assert!(agents.replace(&fixture.agent, &after).await.unwrap());
            let worker = fixture.work();
            let refused = fixture.wait_for_status(&change, ChangeStatus::Failed).await;
            let words = refused.words.unwrap();
            assert!(words.contains(why), "{words}");
            assert_eq!(fixture.runs(), 0);
            worker.abort();
        }
    }

    #[tokio::test]
    async fn an_approved_change_of_a_revoked_agent_does_not_run() {
        let fixture = fixture().await;
        let change = fixture.propose_change().await;
        fixture.approve(&change).await;
        fixture
            .vault
            .agents()
            .revoke(&fixture.agent.id)
            .await
            .unwrap();
        let worker = fixture.work();
        fixture
            .wait_for_status(&change, ChangeStatus::Withdrawn)
            .await;
        assert_eq!(fixture.runs(), 0);
        worker.abort();
    }

    #[tokio::test]
    async fn nothing_is_begun_when_the_server_stops() {
        let fixture = fixture().await;
        let change = fixture.propose_change().await;
        fixture.approve(&change).await;
        fixture.stop.send_replace(true);
        fixture.work().await.unwrap();
        let left = fixture.vault.changes().get(&change.id).unwrap().unwrap();
        assert_eq!(left.status, ChangeStatus::Approved);
        assert_eq!(fixture.runs(), 0);
    }

    #[tokio::test]
    async fn a_grant_is_for_its_agent_tool_and_target_and_never_more_than_the_policy() {
        let fixture = fixture().await;
        let tool = fixture.engine.catalog.tool("restart").unwrap();
        let verdict = |container: &str| {
            let arguments = json!({ "container": container });
            judge(&fixture.who(), tool, arguments.as_object().unwrap())
        };
        assert!(matches!(verdict("web"), Verdict::Propose));
        let give = async |agent: &str, tool: &str, target: Option<&str>| {
            let new = NewGrant {
                agent: agent.into(),
                tool: tool.into(),
                target: target.map(str::to_owned),
                bound: GrantBound::Any,
                given_by: "local:root".into(),
                until_ms: now_ms() + 3_600_000,
            };
            fixture.vault.grants().add(new).await.unwrap()
        };
        let own = fixture.agent.id.as_str();
        for (agent, tool, target) in [
            ("agent_other", "restart", None),
            (own, "stop", None),
            (own, "restart", Some("db")),
        ] {
            give(agent, tool, target).await;
            assert!(matches!(verdict("web"), Verdict::Propose), "{agent} {tool}");
        }
        let grant = give(own, "restart", Some("web")).await;
        assert!(matches!(verdict("web"), Verdict::Granted(_)));
        let mut after = fixture.agent.clone();
        after.preset = Preset::Observe;
        let agents = fixture.vault.agents();
        assert!(agents.replace(&fixture.agent, &after).await.unwrap());
        assert!(matches!(verdict("web"), Verdict::Deny), "it is no operator");
        assert!(agents.replace(&after, &fixture.agent).await.unwrap());
        assert!(matches!(verdict("web"), Verdict::Granted(_)));
        assert!(fixture.vault.grants().end(&grant.id).await.unwrap());
        assert!(matches!(verdict("web"), Verdict::Propose));
    }
}
