//! The arguments of `gatewren backup`, and their dispatch to the subcommands.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::super::console::output::{conclude, fail};
use super::super::console::progress::Progress;
use super::super::console::runtime;
use super::super::console::target::SubcommandArgs;
use super::context::BackupContext;
use super::keep_rule::{KeepPart, parse, rule};
use super::print;
use gatewren_host::backends::{BackupId, BackupSubject, ContainerRef, NewBackup, TargetName};

/// Exit code: the backup is damaged, or older ones could not be deleted.
const NOT_WHOLE: u8 = 4;

/// The arguments of the command.
pub type BackupArgs = SubcommandArgs<BackupSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum BackupSubcommand {
    /// List the backups, the newest first
    List {
        /// Only backups on this target
        #[arg(long)]
        target: Option<TargetName>,
        /// Only backups of this container
        #[arg(long)]
        container: Option<ContainerRef>,
    },
    /// Back up a container, or a directory of `backup_paths`
    ///
    /// Exits with 4 if the backup was made, but older ones could not be deleted.
    Create {
        /// The target that stores it
        target: TargetName,
        /// The container
        #[arg(required_unless_present = "path", conflicts_with = "path")]
        container: Option<ContainerRef>,
        /// The absolute path of a directory or file, instead of a container
        #[arg(long)]
        path: Option<String>,
        /// Do not freeze a running container
        #[arg(long)]
        no_freeze: bool,
        /// What to keep of the older backups of the same container or path, such as daily=7; the others are deleted
        #[arg(long, value_name = "PERIOD=N", value_parser = parse)]
        keep: Vec<KeepPart>,
    },
    /// Read a backup completely and compare each byte
    ///
    /// Exits with 4 if it is damaged.
    Verify {
        /// The target that holds it
        target: TargetName,
        /// The id of the backup
        backup: BackupId,
    },
    /// Restore a backup to a stopped or new container, or to a new directory of `host_file_writes`
    Restore {
        /// The target that holds it
        target: TargetName,
        /// The id of the backup
        backup: BackupId,
        /// The container to restore to
        #[arg(required_unless_present = "path", conflicts_with = "path")]
        container: Option<ContainerRef>,
        /// The absolute path of the new directory, instead of a container
        #[arg(long)]
        path: Option<String>,
    },
    /// Delete a backup; this cannot be undone
    Delete {
        /// The target that holds it
        target: TargetName,
        /// The id of the backup
        backup: BackupId,
    },
}

impl BackupSubcommand {
    /// The line while it runs.
    fn progress(&self) -> Progress {
        Progress::begin(match self {
            Self::List { .. } => "reading the targets",
            Self::Create { .. } => "creating the backup",
            Self::Verify { .. } => "reading the backup",
            Self::Restore { .. } => "restoring the backup",
            Self::Delete { .. } => "deleting the backup",
        })
    }
}

/// Runs the command; it needs the helper, but not the server.
pub fn run(args: &BackupArgs) -> ExitCode {
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let context = match BackupContext::open(&args.place) {
        Ok(context) => context,
        Err(words) => return fail(&words),
    };
    let progress = args.subcommand.progress();
    let done = runtime.block_on(dispatch(&context, &args.subcommand, args.json));
    drop(progress);
    match done {
        Ok(done) => match conclude(Ok(done.text)) {
            ExitCode::SUCCESS if !done.is_whole => ExitCode::from(NOT_WHOLE),
            code => code,
        },
        Err(words) => fail(&words),
    }
}

/// What a subcommand prints, and whether all is well.
struct Done {
    text: String,
    is_whole: bool,
}

impl Done {
    /// The JSON of an answer, or its text for people.
    fn of(answer: &Value, text: String, json: bool) -> Self {
        Self {
            text: if json {
                json!(answer).to_string()
            } else {
                text
            },
            is_whole: true,
        }
    }
}

async fn dispatch(
    context: &BackupContext,
    subcommand: &BackupSubcommand,
    json: bool,
) -> Result<Done, String> {
    match subcommand {
        BackupSubcommand::List { target, container } => {
            list(context, target.clone(), container.as_ref(), json).await
        }
        BackupSubcommand::Create {
            target,
            container,
            path,
            no_freeze,
            keep,
        } => {
            let backup = NewBackup {
                target: target.clone(),
                subject: subject(container.as_ref(), path.as_deref())?,
                freeze: !no_freeze,
                keep: rule(keep)?,
            };
            Box::pin(create(context, backup, json)).await
        }
        BackupSubcommand::Verify { target, backup } => {
            let verified = context.backups.verify(target.clone(), backup.clone(), None);
            let verified = verified.await.map_err(|e| e.to_string())?;
            Ok(Done {
                is_whole: verified.whole,
                ..Done::of(&json!(verified), print::verified(&verified), json)
            })
        }
        BackupSubcommand::Restore {
            target,
            backup,
            container,
            path,
        } => {
            let subject = subject(container.as_ref(), path.as_deref())?;
            Box::pin(restore(context, target, backup, subject, json)).await
        }
        BackupSubcommand::Delete { target, backup } => {
            let what = json!({ "target": target, "backup": backup });
            let deleted = context.backups.delete(target.clone(), backup.clone(), None);
            let deleted = Box::pin(context.audited("backup delete", what, deleted)).await?;
            Ok(Done::of(&json!(deleted), format!("deleted {backup}"), json))
        }
    }
}

async fn list(
    context: &BackupContext,
    target: Option<TargetName>,
    container: Option<&ContainerRef>,
    json: bool,
) -> Result<Done, String> {
    let mut found = context
        .backups
        .list(target)
        .await
        .map_err(|e| e.to_string())?;
    let is_wanted = |own: Option<&ContainerRef>| container.is_none() || own == container;
    found
        .backups
        .retain(|backup| is_wanted(backup.container.as_ref()));
    let text = if found.backups.is_empty() {
        "there are no backups".to_owned()
    } else {
        print::list(&found.backups)
    };
    let unseen = found.unseen.iter();
    let unseen = unseen.map(|unseen| format!("\n{}: {}", unseen.target, unseen.obstacle));
    let text = text + &unseen.collect::<String>();
    Ok(Done::of(&json!(found), text, json))
}

async fn create(context: &BackupContext, backup: NewBackup, json: bool) -> Result<Done, String> {
    let what = json!({ "target": backup.target, "of": backup.subject, "keep": backup.keep });
    let created = context.backups.create(backup, None);
    let created = Box::pin(context.audited("backup create", what, created)).await?;
    Ok(Done {
        is_whole: created.not_deleted.is_none(),
        ..Done::of(&json!(created), print::created(&created), json)
    })
}

async fn restore(
    context: &BackupContext,
    target: &TargetName,
    backup: &BackupId,
    to: BackupSubject,
    json: bool,
) -> Result<Done, String> {
    let what = json!({ "target": target, "backup": backup, "to": to });
    let backups = &context.backups;
    let restored = backups.restore(target.clone(), backup.clone(), to.clone(), None);
    let restored = Box::pin(context.audited("backup restore", what, restored)).await?;
    let left = &restored.not_restored;
    let answer = json!({ "target": target, "backup": backup, "to": to, "not_restored": left });
    Ok(Done::of(&answer, print::restored(backup, &restored), json))
}

/// Returns the container or the path; the parser accepts exactly one.
fn subject(container: Option<&ContainerRef>, path: Option<&str>) -> Result<BackupSubject, String> {
    match (container, path) {
        (Some(container), None) => Ok(BackupSubject::Container(container.clone())),
        (None, Some(path)) => Ok(BackupSubject::Path(path.to_owned())),
        _ => Err("give either a container or --path".to_owned()),
    }
}
