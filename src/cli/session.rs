//! `gatewren session`: sends notifications to connected clients.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::console::output::fail;
use super::console::target::SubcommandArgs;
use super::inbox::{InboxContext, run_on_vault};
use super::owner_action::owner_context;
use gatewren_gate::owner_actions::OwnerCommand;
use gatewren_server::app::{NoticeTarget, OwnerNotice, send_notice};

/// The arguments of the command.
pub type SessionArgs = SubcommandArgs<SessionSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum SessionSubcommand {
    /// Send a notification to clients that are connected now
    ///
    /// Clients with a session get it on their stream; clients of 2026-07-28 get the change of the list if they
    /// subscribed to it, and no log messages. Nothing is kept for later. At most 60 are sent in a minute.
    Notify(SessionNoticeArgs),
}

/// A notification and its receivers.
#[derive(Debug, clap::Args)]
pub struct SessionNoticeArgs {
    /// The session's name, as the tool `session_list` and the audit show it
    #[arg(value_name = "SESSION", required_unless_present_any = ["agent", "all"], conflicts_with_all = ["agent", "all"])]
    session: Option<String>,

    /// The clients of this agent: its id or its name
    #[arg(long, conflicts_with = "all")]
    agent: Option<String>,

    /// The clients of all agents
    #[arg(long)]
    all: bool,

    /// `notifications/message` or `notifications/tools/list_changed`
    #[arg(long, default_value = "notifications/message")]
    method: String,

    /// The parameters of at most 4 KiB: for a message level, data and perhaps logger
    #[arg(long, value_name = "JSON", default_value = "{}")]
    params: String,
}

/// Runs the command; it needs a running server.
pub fn run(args: &SessionArgs) -> ExitCode {
    let SessionSubcommand::Notify(notify) = &args.subcommand;
    // Before root becomes the server's user, who may not read the settings.
    let directory = match args.place.settings() {
        Ok(settings) => args.place.directory(&settings),
        Err(words) => return fail(&words),
    };
    run_on_vault(&args.place, async |context| {
        let notice = notify.notice(context)?;
        let command = OwnerCommand {
            command: "session notify",
            what: json!(notice),
            target: notify.session.as_deref().or(notify.agent.as_deref()),
            change: None,
        };
        let sent = send_notice(&directory, &notice);
        let owner = owner_context(&context.vault);
        let sessions = owner.run_audited(command, sent).await?;
        Ok(if args.json {
            json!({ "sent": true, "sessions": sessions }).to_string()
        } else {
            format!("sent; {sessions} of its receivers have a session")
        })
    })
}

impl SessionNoticeArgs {
    /// Returns the notice, if the server would accept it.
    fn notice(&self, context: &InboxContext) -> Result<OwnerNotice, String> {
        let params: Map<String, Value> = serde_json::from_str(&self.params)
            .map_err(|cause| format!("--params is no JSON object: {cause}"))?;
        let to = match (&self.session, &self.agent) {
            (Some(session), _) => NoticeTarget::Session(session.clone()),
            (None, Some(agent)) => NoticeTarget::Agent(context.agent(agent)?),
            (None, None) => NoticeTarget::All,
        };
        let notice = OwnerNotice {
            to,
            method: self.method.clone(),
            params,
        };
        notice.content()?;
        Ok(notice)
    }
}
