//! Creates a backup in a restic repository: one snapshot, which appears only when it is complete.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::files::private_dir;
use gatewren_wire::operations::{Backup, BackupSubject, OperationRefusal, Stream};

use super::archive::{ArchiveContents, write_refusal};
use super::check::CONFIG;
use super::create::{
    exclude_target, find_source, format, freeze_source, new_manifest, write, write_manifest,
};
use super::restic::{LineSplitter, Restic, ResticCommand, order};
use super::restic_store::{FORMAT, FROZEN, OURS, RUNNING};
use super::source::BackupSource;
use super::targets::{HelperBackupTarget, no_state};
use crate::context::operation_context::OperationContext;
use crate::processes::staging_dir::StagingDir;
use crate::processes::step_error::StepError;

/// The directory where the definitions are assembled, in the helper's state directory, with one directory for each
/// target.
const PLACE: &str = "restic";

/// restic's exit status if it could not read everything.
const INCOMPLETE: i32 = 3;

/// The end of its error message if a file did not exist any more (ENOENT).
const GONE: &[u8] = b"\"Err\":2}";

/// The refusal of a backup that consists of several directories.
const ONE_DIRECTORY: &str = "a backup of a container of Docker or Podman cannot be stored in a restic repository; \
                             name a target that is a directory, a disk or a share";

/// A line of restic's output.
#[derive(Deserialize)]
struct ResticMessage {
    message_type: String,
    percent_done: Option<f64>,
    total_bytes: Option<u64>,
    data_added: Option<u64>,
    snapshot_id: Option<String>,
}

/// The result of a backup, from restic's output.
#[derive(Default)]
struct ResticResult {
    percent: u8,
    summary: Option<ResticMessage>,
    gone: bool,
    unread: Option<String>,
}

/// Creates a backup and returns its manifest.
pub async fn create(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    target: &HelperBackupTarget,
    subject: &BackupSubject,
    freeze: bool,
) -> Result<Backup, StepError> {
    if let BackupSubject::Container(name) = subject
        && name.runtime() != RuntimeKind::Lxc
    {
        return Err(OperationRefusal::bad_command(ONE_DIRECTORY).into());
    }
    let (own, home) = (target.clone(), context.helper.state.clone());
    let (directory, _lock) = context
        .run_blocking(move || {
            let place = home
                .ok_or_else(no_state)?
                .join(PLACE)
                .join(own.name.as_str());
            private_dir(&place).map_err(|e| OperationRefusal::failed(e.to_string()))?;
            let lock = own.lock(&place)?;
            Ok((place, lock))
        })
        .await?;
    let mut source = find_source(context, subject, freeze).await?;
    if let Some(path) = &restic.path {
        exclude_target(&mut source.contents, path)?;
    }
    restic.unlock(context).await;
    let mut backup = new_manifest(subject);
    // The same name each time: restic compares with the last snapshot of the same paths.
    let name = backup
        .container
        .as_ref()
        .map_or("host", |name| name.as_str());
    let stage = StagingDir::private(&directory, name).await?;
    let made = fill(context, restic, stage.path(), &source, &mut backup).await;
    stage.clear().await;
    made.map(|()| Backup {
        target: Some(target.name.clone()),
        format: None,
        ..backup
    })
}

async fn fill(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    stage: &Path,
    source: &BackupSource<'_>,
    backup: &mut Backup,
) -> Result<(), StepError> {
    let guard = freeze_source(context, source, backup).await?;
    if let Some(own) = &source.container {
        backup.format = Some(format(FORMAT, Some(own)));
        let written = write(&stage.join(CONFIG), own.text.as_bytes());
        written
            .and_then(|()| write_manifest(stage, backup))
            .map_err(|e| write_refusal(&e))?;
    }
    let definition = source.container.as_ref().map(|_| stage);
    let command = backup_command(&source.contents, definition, backup)?;
    let mut result = ResticResult::default();
    let (mut stdout, mut stderr) = (LineSplitter::default(), LineSplitter::default());
    let mut on_output = |which: Stream, bytes: &[u8]| {
        let mut news = None;
        match which {
            Stream::Stdout => {
                stdout.read(bytes, &mut |line| news = result.line(line).or(news.take()));
            }
            Stream::Stderr => stderr.read(bytes, &mut |line| result.add_error(line)),
        }
        news.map(String::into_bytes)
    };
    let (code, reason) = restic.run(context, command, &mut on_output).await?;
    drop(guard);
    let summary = result.summary.as_ref();
    let snapshot = summary.and_then(|summary| summary.snapshot_id.clone());
    let problem = match (code, &snapshot, result.unread.take()) {
        (0 | INCOMPLETE, Some(_), None) => None,
        (0 | INCOMPLETE, Some(_), Some(unread)) => {
            Some(format!("some files cannot be read: {unread}"))
        }
        _ => Some(reason),
    };
    if let Some(problem) = problem {
        let left = forget(context, restic, snapshot.as_deref()).await?;
        return Err(write_refusal(&format!("{problem}{left}")).into());
    }
    let may_change = backup.was_running && !backup.was_frozen;
    backup.changed_meanwhile = result.gone || may_change;
    backup.archive_bytes = result.summary.and_then(|summary| summary.data_added);
    Ok(())
}

/// Removes an incomplete snapshot; returns a message if it could not be removed.
async fn forget(
    context: &mut OperationContext<'_>,
    restic: &Restic,
    snapshot: Option<&str>,
) -> Result<String, StepError> {
    let Some(id) = snapshot.filter(|id| id.bytes().all(|b| b.is_ascii_hexdigit())) else {
        return Ok(String::new());
    };
    let (code, _) = restic
        .run(context, order(&["forget", id]), &mut |_, _| None)
        .await?;
    Ok(if code == 0 {
        String::new()
    } else {
        format!("; an incomplete snapshot {id} remains in the repository: run restic forget {id}")
    })
}

/// Builds the command. The files are named relative to their directory. Excluded files are named by their whole path,
/// as restic compares that.
fn backup_command(
    contents: &ArchiveContents,
    definition: Option<&Path>,
    backup: &Backup,
) -> Result<ResticCommand, OperationRefusal> {
    let gone =
        |e: std::io::Error| OperationRefusal::failed(format!("the directory cannot be read: {e}"));
    let directory = Path::new(&contents.directory)
        .canonicalize()
        .map_err(gone)?;
    let [member] = contents.members.as_slice() else {
        return Err(OperationRefusal::bad_command(ONE_DIRECTORY));
    };
    let (cwd, name, whole) = if member.name == "." {
        let name = directory.file_name().ok_or_else(|| {
            OperationRefusal::bad_command(
                "restic cannot back up / itself; name a directory below it",
            )
        })?;
        // The parent of the directory that is held open, even if the path changes.
        let parent = format!("{}/..", contents.directory);
        (parent, PathBuf::from(name), directory.clone())
    } else {
        let name = member.name.trim_start_matches("./");
        (
            contents.directory.clone(),
            PathBuf::from(name),
            directory.join(name),
        )
    };
    let mut args = vec![
        "backup".to_owned(),
        "--json".to_owned(),
        "--one-file-system".to_owned(),
        format!("--tag={OURS}"),
        format!("--tag={}", backup.backup),
    ];
    for (is_so, tag) in [(backup.was_running, RUNNING), (backup.was_frozen, FROZEN)] {
        args.extend(is_so.then(|| format!("--tag={tag}")));
    }
    let without = contents.without.iter().map(|out| {
        let path = whole.join(out.trim_start_matches("./"));
        format!("--exclude={}", literal(&path.display().to_string()))
    });
    args.extend(without);
    args.extend(["--".to_owned(), name.display().to_string()]);
    args.extend(definition.map(|path| path.display().to_string()));
    Ok(ResticCommand {
        cwd,
        args,
        ..order(&[])
    })
}

/// Escapes a path so that it is a pattern that matches only itself.
fn literal(path: &str) -> String {
    let mut pattern = String::new();
    for c in path.chars() {
        if "*?[]\\$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

impl ResticResult {
    /// Parses a line of progress; returns the message for the caller.
    fn line(&mut self, line: &[u8]) -> Option<String> {
        let message: ResticMessage = serde_json::from_slice(line).ok()?;
        if message.message_type == "summary" {
            self.summary = Some(message);
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 100"
        )]
        let percent = (message.percent_done? * 100.0).clamp(0.0, 100.0) as u8;
        if percent <= self.percent {
            return None;
        }
        self.percent = percent;
        let bytes = message.total_bytes.unwrap_or_default();
        Some(format!("{percent} % of {bytes} bytes\n"))
    }

    /// Records what could not be read. A file that was deleted after its directory was read does not count.
    fn add_error(&mut self, line: &[u8]) {
        let is_gone = line.windows(GONE.len()).any(|part| part == GONE);
        let skipped = line.trim_ascii_end().ends_with(b", skipping");
        if is_gone && !skipped {
            self.gone = true;
        } else if line.starts_with(b"{") || skipped {
            let complaint = String::from_utf8_lossy(line)
                .trim()
                .chars()
                .take(300)
                .collect();
            self.unread.get_or_insert(complaint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::restic_create::*;

    /// Recorded from restic 0.14.0 of Debian 12.
    #[test]
    fn what_restic_says_is_understood() {
        let mut result = ResticResult::default();
        let mut line = |text: &str| result.line(text.as_bytes());
        let begins =
            r#"{"message_type":"status","percent_done":0,"total_files":1,"total_bytes":2}"#;
        assert_eq!(line(begins), None);
        let status = r#"{"message_type":"status","seconds_elapsed":1,"seconds_remaining":2,"percent_done":0.3400136202431773,"total_files":2947,"files_done":1002,"total_bytes":58880006,"bytes_done":20020004,"current_files":["/rootfs/many/00987"]}"#;
        assert_eq!(line(status).unwrap(), "34 % of 58880006 bytes\n");
        assert_eq!(line(status), None);
        assert_eq!(line("not JSON"), None);
        let summary = r#"{"message_type":"summary","files_new":2,"files_changed":0,"files_unmodified":0,"dirs_new":2,"dirs_changed":0,"dirs_unmodified":0,"data_blobs":1,"tree_blobs":3,"data_added":1949,"total_files_processed":2,"total_bytes_processed":4,"total_duration":0.256609017,"snapshot_id":"ff77f589"}"#;
        assert_eq!(line(summary), None);
        let summary = result.summary.as_ref().unwrap();
        assert_eq!(
            (summary.data_added, summary.snapshot_id.as_deref()),
            (Some(1949), Some("ff77f589"))
        );
        result.add_error(br#"{"message_type":"error","error":{"Op":"lstat","Path":"/srv/many/02944","Err":2},"during":"scan","item":"/srv/many/02944"}"#);
        assert!(result.gone && result.unread.is_none());
        result.add_error(br#"{"message_type":"error","error":{"Op":"open","Path":"/srv/a","Err":5},"during":"archival","item":"/srv/a"}"#);
        assert!(result.unread.is_some());
        let mut other = ResticResult::default();
        other.add_error(b"/srv/gone does not exist, skipping\n");
        assert!(other.unread.is_some() && !other.gone);
    }

    #[test]
    fn a_path_is_no_pattern() {
        assert_eq!(literal("/srv/a[1]*\\$x"), "/srv/a\\[1\\]\\*\\\\\\$x");
    }
}
