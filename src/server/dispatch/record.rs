//! The record of a call: the intent before anything runs and the outcome afterwards, or one row for a call that only
//! reads, and one journal line.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::call::{Call, CallContext, ToolRequest};
use super::engine::Engine;
use super::in_flight::DrainGuard;
use super::reference;
use gatewren_base::telemetry::{Metrics, redact_text};
use gatewren_gate::policy::{Verdict, mode};
use gatewren_store::vault::{
    AuditEntry, AuditId, AuditOutcome, AuditTable, ReadRecord, Vault, VaultError, WrittenIntent,
};
use gatewren_wire::protocol::{RpcError, TraceParent};
use gatewren_wire::registry::{Answer, LongCall, Risk, Tool};

/// The record of one call. If it is dropped before its end, it records that the call was cancelled or continues as
/// a job.
pub struct Record {
    in_flight: Option<DrainGuard>,
    metrics: Arc<Metrics>,
    audit: Option<(Vault, BegunRecord)>,
    /// The wait for the intent, if it is not on the disk yet.
    unwritten: Option<WrittenIntent>,
    tool: Arc<Tool>,
    agent: Arc<str>,
    space: Arc<str>,
    request: Arc<str>,
    /// The client's own id of its request.
    client_request: Option<Arc<String>>,
    /// The state's revision before the call; later revisions may be caused by the call.
    revision_before: Option<u64>,
    /// The trace that the call belongs to, if its caller sent one.
    trace: Option<TraceParent>,
    began: Instant,
    ended: bool,
    long: Option<Arc<LongCall>>,
}

/// When the intent of a call that changes something must be on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentOrder {
    /// Before anything runs.
    First,
    /// Before the command of the call runs. It may be prepared meanwhile.
    BeforeCommand,
}

/// What the audit has of a call that has begun.
#[expect(clippy::large_enum_variant, reason = "almost all calls read")]
enum BegunRecord {
    /// Its intent, on the disk. The outcome becomes a second row.
    Intent(AuditId),
    /// A place for its only row.
    Read(ReadRecord),
}

impl BegunRecord {
    fn id(&self) -> &AuditId {
        match self {
            Self::Intent(id) => id,
            Self::Read(record) => record.id(),
        }
    }

    fn end(self, audit: &AuditTable<'_>, outcome: AuditOutcome<'_>) -> Result<(), VaultError> {
        match self {
            Self::Intent(id) => audit.outcome(&id, outcome),
            Self::Read(record) => audit.end_read(record, outcome),
        }
    }
}

impl Record {
    /// Records the intent, or reserves the row of a call that only reads. If this fails, the call does not run.
    pub async fn begin(
        engine: &Engine,
        call: &Call,
        request: &ToolRequest,
        verdict: &Verdict,
    ) -> Result<Self, RpcError> {
        Self::begin_in_order(engine, call, request, verdict, IntentOrder::First).await
    }

    /// Does the same. With [`IntentOrder::BeforeCommand`] it may return before the intent is on the disk, and
    /// [`Self::take_unwritten`] returns the wait for it.
    pub async fn begin_in_order(
        engine: &Engine,
        call: &Call,
        request: &ToolRequest,
        verdict: &Verdict,
        order: IntentOrder,
    ) -> Result<Self, RpcError> {
        let context = &call.context;
        let (audit, unwritten) = match &engine.vault {
            Some(vault) => {
                let begun = begin_in_audit(vault, context, request, verdict, order).await?;
                (Some((vault.clone(), begun.0)), begun.1)
            }
            None => (None, None),
        };
        let ToolRequest { tool, cx, .. } = request;
        Ok(Self {
            in_flight: Some(DrainGuard::begin(&engine.in_flight)),
            metrics: engine.metrics.clone(),
            audit,
            unwritten,
            tool: tool.clone(),
            agent: context.who.agent_id().shared(),
            space: context.who.space().clone(),
            request: cx.reference().clone(),
            client_request: context.client_request.clone(),
            revision_before: engine.newest_of_all().filter(|_| tool.syncs_state()),
            trace: TraceParent::read(&call.params),
            began: Instant::now(),
            ended: false,
            long: None,
        })
    }

    /// Takes the wait for the intent, if it is not on the disk yet.
    pub fn take_unwritten(&mut self) -> Option<WrittenIntent> {
        self.unwritten.take()
    }

    /// Marks the call as one without an intent, which could not be written: it gets no outcome either.
    pub fn has_no_intent(&mut self) {
        self.audit = None;
    }

    /// Marks the call as waiting for a person: the server may stop before they answer.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.in_flight = None;
        self
    }

    /// Writes the intent of a call that only reads, before it puts another call into the inbox, which names this one.
    pub async fn with_intent(mut self) -> Result<Self, RpcError> {
        self.audit = match self.audit.take() {
            Some((vault, BegunRecord::Read(record))) => {
                let written = vault.audit().read_to_intent(record).await;
                let id = written.map_err(|cause| refusal(&cause))?;
                Some((vault, BegunRecord::Intent(id)))
            }
            other => other,
        };
        Ok(self)
    }

    /// Marks the call as one that may continue as a job.
    #[must_use]
    pub fn of_long(mut self, long: Option<Arc<LongCall>>) -> Self {
        self.long = long;
        self
    }

    /// The call's id in the audit; `None` if there is no audit.
    pub fn audit_id(&self) -> Option<String> {
        self.audit.as_ref().map(|(_, begun)| begun.id().to_string())
    }

    /// Records the outcome and the revision that reflects it.
    pub fn end(mut self, outcome: &'static str, revision: Option<u64>) {
        self.write(outcome, revision, None);
    }

    /// Records that the call was refused, and why.
    pub fn refuse(mut self, why: &str) {
        self.write("refused", None, Some(why));
    }

    /// Records that the call failed, and why.
    pub fn fail(mut self, why: &str) {
        self.write("failed", None, Some(why));
    }

    /// Records how the tool answered: that the call failed, and why, or that it succeeded.
    pub fn end_with(mut self, answer: &Answer, revision: Option<u64>) {
        if answer.failed {
            self.write("failed", revision, answer.first_text());
        } else {
            self.write("ok", revision, None);
        }
    }

    fn write(&mut self, outcome: &'static str, revision: Option<u64>, error: Option<&str>) {
        self.ended = true;
        let lasted = self.began.elapsed();
        let duration_ms = u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX);
        self.metrics
            .count_call(self.tool.name(), &self.agent, outcome, lasted);
        let audit = self.audit.take();
        let Self {
            tool,
            agent,
            space,
            request,
            client_request,
            trace,
            ..
        } = &*self;
        let tool = tool.name();
        tracing::info!(
            tool,
            agent = &**agent,
            space = &**space,
            request = &**request,
            client_request = client_request.as_ref().map(|id| redact_text(id)).as_deref(),
            duration_ms,
            status = outcome,
            trace = trace.as_ref().map(|parent| parent.trace.as_str()),
            span = trace.as_ref().map(|parent| parent.span.as_str()),
            "{tool} {outcome}"
        );
        if let Some((vault, begun)) = audit
            && let Err(cause) = begun.end(
                &vault.audit(),
                AuditOutcome {
                    outcome,
                    duration_ms,
                    revision_before: revision.and(self.revision_before),
                    revision,
                    error,
                },
            )
        {
            tracing::error!(%cause, %request, "cannot write the outcome of a call to the audit");
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.ended {
            let continues = self.long.as_ref().is_some_and(|long| long.has_begun());
            self.write(if continues { "job" } else { "cancelled" }, None, None);
        }
    }
}

/// The length of an IPv6 address with an embedded IPv4 address, in bytes.
const LONGEST_ADDRESS: usize = 45;

/// Formats an address into a buffer, without an allocation.
fn text_of(ip: IpAddr, room: &mut [u8; LONGEST_ADDRESS]) -> &str {
    let mut rest = &mut room[..];
    // Cannot fail: the buffer has room for the longest address.
    let _ = write!(rest, "{ip}");
    let written = LONGEST_ADDRESS - rest.len();
    let text = room.get(..written).unwrap_or_default();
    str::from_utf8(text).unwrap_or_default()
}

async fn begin_in_audit(
    vault: &Vault,
    context: &CallContext,
    request: &ToolRequest,
    verdict: &Verdict,
    order: IntentOrder,
) -> Result<(BegunRecord, Option<WrittenIntent>), RpcError> {
    let ToolRequest { tool, cx, .. } = request;
    let mut room = [0; LONGEST_ADDRESS];
    let address = context.address.map_or("local", |ip| text_of(ip, &mut room));
    let arguments = Value::Object(request.arguments.clone());
    let target = ["container", "unit", "pointer"]
        .iter()
        .find_map(|name| arguments.get(*name)?.as_str());
    let token = context.who.token_id();
    let entry = AuditEntry {
        agent: context.who.agent_id().as_str(),
        token: token.map(|token| &**token),
        space: Some(context.who.space()),
        session: context.session.as_deref(),
        request: Some(cx.reference()),
        address,
        tool: tool.name(),
        risk: tool.risk().as_str(),
        arguments: &arguments,
        reason: request.reason.as_deref(),
        target,
        mode: Some(mode(context.who.policy(), &**tool).as_str()),
        decision: verdict.as_str(),
        change: verdict.change(),
    };
    let audit = vault.audit();
    // A call that asks somebody, or that may continue as a job, shows while it waits.
    let only_reads = tool.risk() == Risk::Read
        && matches!(verdict, Verdict::Allow(_))
        && cx.long_call().is_none();
    let begun = async {
        if only_reads && let Some(record) = audit.begin_read(entry.clone()).await? {
            return Ok((BegunRecord::Read(record), None));
        }
        // Boxed: otherwise the future of a call that only reads would reserve space for it.
        if order == IntentOrder::BeforeCommand {
            let (id, unwritten) = Box::pin(audit.queue_intent(entry)).await?;
            return Ok((BegunRecord::Intent(id), Some(unwritten)));
        }
        let id = Box::pin(audit.intent(entry)).await?;
        Ok((BegunRecord::Intent(id), None))
    };
    begun.await.map_err(|cause| refusal(&cause))
}

/// Logs why a call cannot be recorded, and returns the error for its caller.
pub fn refusal(cause: &VaultError) -> RpcError {
    let reference = reference::next();
    tracing::error!(%cause, %reference, "cannot write the intent of a call to the audit");
    RpcError::internal(&reference)
}
