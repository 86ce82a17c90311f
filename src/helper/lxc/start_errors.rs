//! Why a container did not start: the errors that LXC wrote to its log during the start.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use gatewren_wire::operations::{ContainerRef, OperationRefusal};

use super::logs::lxc_log;
use crate::context::helper_context::HelperContext;

/// The most bytes of the log that are read; of a longer one only the beginning counts, where the cause is.
const MOST_BYTES: u64 = 64 * 1024;

/// The most errors in the answer; the first ones name the cause.
const MOST_ERRORS: usize = 4;

/// The most characters of an error; the rest is cut.
const ERROR_CHARS: usize = 300;

/// Errors of these parts of LXC give no cause: its tool, and the part that waits for the new process.
const WITHOUT_CAUSE: [&str; 2] = ["lxc_start", "sync"];

/// The beginning of an error that only follows from another one.
const CONSEQUENCE: &str = "Failed to spawn container ";

/// The end of a container's log before a start.
#[derive(Debug)]
pub struct LogEnd {
    config: PathBuf,
    lxcpath: PathBuf,
    name: ContainerRef,
    bytes: u64,
}

impl LogEnd {
    /// Remembers where the log of a container with this configuration file ends now.
    pub fn now(helper: &HelperContext, config: &Path, name: &ContainerRef) -> Self {
        let lxcpath = helper.containers.lxcpath().to_owned();
        let log = lxc_log(config, &lxcpath, name);
        let bytes = log.and_then(|log| fs::metadata(log).ok());
        Self {
            config: config.to_owned(),
            lxcpath,
            name: name.clone(),
            bytes: bytes.map_or(0, |facts| facts.len()),
        }
    }

    /// Returns the refusal with the errors since then; `None` if LXC wrote none.
    pub fn refusal(&self) -> Option<OperationRefusal> {
        let log = lxc_log(&self.config, &self.lxcpath, &self.name)?;
        let errors = errors(&read_from(&log, self.bytes).ok()?);
        if errors.is_empty() {
            return None;
        }
        let (name, errors) = (&self.name, errors.join("; "));
        Some(OperationRefusal::failed(format!(
            "container '{name}' cannot be started: {errors}. Call container_logs with source: lxc for the whole log"
        )))
    }
}

/// Reads the appended part. A log that became shorter is a new one.
fn read_from(log: &Path, offset: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    let is_longer = file.metadata()?.len() >= offset;
    file.seek(SeekFrom::Start(if is_longer { offset } else { 0 }))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the messages of the first errors, each once; those that only follow from others if there are no others.
fn errors(text: &str) -> Vec<String> {
    let all = || text.lines().filter_map(message);
    let has_cause = all().any(|message| !message.starts_with(CONSEQUENCE));
    let mut errors: Vec<String> = Vec::new();
    for message in all().filter(|message| !has_cause || !message.starts_with(CONSEQUENCE)) {
        if errors.len() < MOST_ERRORS && !errors.contains(&message) {
            errors.push(message);
        }
    }
    errors
}

/// Returns the message of a line such as `lxc-start web 20261126090000.000 ERROR    conf - ../src/lxc/conf.c:f:12 - why`.
fn message(line: &str) -> Option<String> {
    let mut parts = line.splitn(3, " - ");
    let (head, _place, message) = (parts.next()?, parts.next()?, parts.next()?);
    let mut words = head.split_whitespace().rev();
    let (module, level) = (words.next()?, words.next()?);
    let is_cause = level == "ERROR" && !WITHOUT_CAUSE.contains(&module);
    let message = message.trim().trim_end_matches('.');
    is_cause.then(|| message.chars().take(ERROR_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::super::start_errors::*;
    use gatewren_base::sys::Scratch;

    /// Recorded from LXC 5.0.2 of Debian 12.
    const RECORDED: &str = "\
lxc-start alpha 20261124013821.161 ERROR    start - ../src/lxc/start.c:print_top_failing_dir:99 - Permission denied - Could not access /root. Please grant it x access, or add an ACL for the container root
lxc-start alpha 20261124013821.161 ERROR    sync - ../src/lxc/sync.c:sync_wait:34 - An error occurred in another process (expected sequence number 3)
lxc-start alpha 20261124013821.162 WARN     start - ../src/lxc/start.c:lxc_spawn:1 - unimportant
lxc-start alpha 20261124013821.163 ERROR    start - ../src/lxc/start.c:__lxc_start:2114 - Failed to spawn container \"alpha\"
lxc-start alpha 20261124013826.163 ERROR    lxc_start - ../src/lxc/tools/lxc_start.c:main:306 - The container failed to start
lxc-start alpha 20261124013826.163 ERROR    lxc_start - ../src/lxc/tools/lxc_start.c:main:309 - To get more details, run the container in foreground mode
";

    #[test]
    fn the_causes_come_first_and_what_the_tool_says_is_left_out() {
        let found = errors(RECORDED);
        assert_eq!(
            found,
            [
                "Permission denied - Could not access /root. Please grant it x access, or add an ACL for the container root"
            ]
        );
        let rest = RECORDED.split_once('\n').unwrap().1;
        assert_eq!(errors(rest), ["Failed to spawn container \"alpha\""]);
        let many = (0..99).map(|n| format!("a b ERROR c - d - {n}{}\n", "x".repeat(999)));
        let found = errors(&many.collect::<String>());
        assert_eq!(found.len(), MOST_ERRORS);
        assert!(
            found
                .iter()
                .all(|error| error.chars().count() == ERROR_CHARS)
        );
        assert!(errors("ERROR\n - - \n\u{0}").is_empty());
    }

    #[test]
    fn only_what_was_appended_is_read() {
        let scratch = Scratch::new();
        let log = scratch.join("log");
        fs::write(&log, "old\nnew\n").unwrap();
        assert_eq!(read_from(&log, 4).unwrap(), "new\n");
        assert_eq!(read_from(&log, 99).unwrap(), "old\nnew\n", "a new file");
    }
}
