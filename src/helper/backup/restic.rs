//! Runs the host's restic on a target's repository.
//!
//! The password and credentials come from files that the owner's policy file names. They never appear in process
//! lists. A killed restic leaves no lock behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gatewren_base::config::BackupStore;
use gatewren_base::sys::files::read_bounded;
use gatewren_wire::operations::{OperationRefusal, Stream};

use super::targets::HelperBackupTarget;
use crate::context::operation_context::OperationContext;
use crate::processes::commands::OutputCallback;
use crate::processes::step_error::{ProgramStep, StepError};

/// The directory of restic's cache for remote repositories, in the helper's state directory.
const CACHE: &str = "restic-cache";

/// The largest credentials file. A longer one is rejected.
const CREDENTIALS_BYTES: usize = 4096;

/// Prefixes of the variables that a credentials file may set: only those for servers, none that names a program.
const CREDENTIALS: [&str; 2] = ["AWS_", "RESTIC_REST_"];

/// The variable for the whole address, for a repository whose address contains a password.
const ADDRESS: &str = "RESTIC_REPOSITORY";

/// The shortest value that is redacted in restic's output.
const SECRET_CHARS: usize = 4;

/// How long removing the lock of a killed restic may take. After that the next backup removes it.
const UNLOCK_TIME: Duration = Duration::from_secs(10);

/// The longest line that is read; the rest of a longer one is dropped.
const LINE_BYTES: usize = 64 * 1024;

/// The most bytes of its stderr that are kept.
const COMPLAINT_BYTES: usize = 2048;

/// A repository and how to reach it.
#[derive(Debug)]
pub struct Restic {
    /// Its directory, if it is on this host.
    pub path: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    secrets: Vec<String>,
    cache: Vec<String>,
}

/// A restic command.
#[derive(Debug)]
pub struct ResticCommand {
    /// Its working directory.
    pub cwd: String,
    /// All arguments after the program's name.
    pub args: Vec<String>,
    /// How long it may take; the whole operation may take longer.
    pub time: Duration,
}

/// A command that does not depend on the working directory.
pub fn order(args: &[&str]) -> ResticCommand {
    ResticCommand {
        cwd: "/".to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        time: Duration::MAX,
    }
}

impl Restic {
    /// Opens the repository of a target; `None` if the target is not restic's.
    pub async fn of(
        context: &mut OperationContext<'_>,
        target: &HelperBackupTarget,
    ) -> Result<Option<Self>, StepError> {
        let (target, state) = (target.clone(), context.helper.state.clone());
        let opened = context.run_blocking(move || match target.repository() {
            None => Ok(None),
            Some(path) => open(&target.store, path?, state.as_deref()),
        });
        opened.await
    }

    /// Runs restic; `on_output` gets its stdout and stderr. Returns its exit code and the reason for a failure.
    pub async fn run(
        &self,
        context: &mut OperationContext<'_>,
        order: ResticCommand,
        on_output: OutputCallback<'_>,
    ) -> Result<(i32, String), StepError> {
        let mut complaint = Vec::new();
        let mut on_step_output = |which: Stream, bytes: &[u8]| {
            if which == Stream::Stderr {
                let room = COMPLAINT_BYTES.saturating_sub(complaint.len());
                complaint.extend(bytes.iter().take(room));
            }
            on_output(which, bytes)
        };
        let step = self.step(order);
        match context.run_step(step, &mut on_step_output).await {
            Ok(code) => Ok((code, self.reason(&complaint))),
            Err(StepError::Killed(why)) => {
                self.unlock(context).await;
                Err(StepError::Killed(why))
            }
            Err(refused) => Err(refused),
        }
    }

    /// Removes the locks of killed processes on this host, not those of other hosts.
    pub async fn unlock(&self, context: &mut OperationContext<'_>) {
        let time = UNLOCK_TIME;
        let step = self.step(ResticCommand {
            time,
            ..order(&["unlock"])
        });
        context.relay.set_uninterruptible(true);
        let done = context.run_step(step, &mut |_, _| None).await;
        context.relay.set_uninterruptible(false);
        if !matches!(done, Ok(0)) {
            tracing::warn!("a restic lock may remain; the next backup tries again to remove it");
        }
    }

    fn step(&self, order: ResticCommand) -> ProgramStep {
        let mut args = order.args;
        args.splice(0..0, self.cache.iter().cloned());
        ProgramStep {
            name: "restic",
            args,
            cwd: order.cwd,
            env: self.variables.clone(),
            time: order.time,
        }
    }

    /// Returns restic's reason for a failure, with secrets redacted.
    fn reason(&self, complaint: &[u8]) -> String {
        let complaint = String::from_utf8_lossy(complaint);
        let fatal = complaint
            .lines()
            .find_map(|line| line.strip_prefix("Fatal: "));
        let first = complaint.lines().find(|line| !line.trim().is_empty());
        let reason = fatal.or(first).unwrap_or("restic gave no reason").trim();
        let hidden = |text: String, secret: &String| text.replace(secret, "***");
        self.secrets.iter().fold(reason.to_owned(), hidden)
    }
}

fn open(
    store: &BackupStore,
    path: Option<PathBuf>,
    state: Option<&Path>,
) -> Result<Option<Restic>, OperationRefusal> {
    let BackupStore::Restic {
        repository,
        password,
        credentials,
    } = store
    else {
        return Ok(None);
    };
    let mut variables = BTreeMap::from([
        (ADDRESS.to_owned(), repository.clone()),
        ("RESTIC_PASSWORD_FILE".to_owned(), password.clone()),
        // A progress report every five seconds.
        ("RESTIC_PROGRESS_FPS".to_owned(), "0.2".to_owned()),
        // Its threads are limited because its processes are.
        ("GOMAXPROCS".to_owned(), "4".to_owned()),
    ]);
    let credentials = credentials.as_deref().map(read_credentials).transpose()?;
    let credentials = credentials.unwrap_or_default();
    let secrets = credentials
        .values()
        .filter(|value| value.len() >= SECRET_CHARS);
    let secrets = secrets.cloned().collect();
    variables.extend(credentials);
    let cache = match (&path, state) {
        (None, Some(state)) => {
            let place = state.join(CACHE).display().to_string();
            vec!["--cleanup-cache".to_owned(), format!("--cache-dir={place}")]
        }
        _ => vec!["--no-cache".to_owned()],
    };
    Ok(Some(Restic {
        path,
        variables,
        secrets,
        cache,
    }))
}

/// Reads the variables of a credentials file, one `NAME=VALUE` a line.
fn read_credentials(file: &str) -> Result<BTreeMap<String, String>, OperationRefusal> {
    let bytes = read_bounded(Path::new(file), CREDENTIALS_BYTES);
    let bytes = bytes.map_err(|e| OperationRefusal::failed(e.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let known = name == ADDRESS || CREDENTIALS.iter().any(|start| name.starts_with(start));
        known.then(|| (name.to_owned(), value.to_owned()))
    };
    lines.map(pair).collect::<Option<_>>().ok_or_else(|| {
        OperationRefusal::failed(format!(
            "{file}: each line must be NAME=VALUE, and NAME must start with AWS_ or RESTIC_REST_, or be {ADDRESS}"
        ))
    })
}

/// Splits output into lines as it arrives.
#[derive(Debug, Default)]
pub struct LineSplitter(Vec<u8>);

impl LineSplitter {
    /// Calls `on_line` with each line as soon as it is complete.
    pub fn read(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES.saturating_sub(self.0.len());
            self.0.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                on_line(&std::mem::take(&mut self.0));
            }
        }
    }
}
