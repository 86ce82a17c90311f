//! The result of a package upgrade, parsed from the final output of the helper's steps.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{FinishedOperation, OperationEnd};
use gatewren_base::sys::{neutralise, plain_line};

use super::error::{BackendError, ErrorKind};
use super::request::operation_error;

/// The maximum number of packages of each kind in a result; the rest is only counted.
const MAX_LISTED: usize = 200;

/// The longest name, version or origin, in characters.
const MAX_WORD: usize = 128;

/// The longest error message of apt, in characters.
const MAX_SENTENCE: usize = 512;

/// How much of apt's last output is shown after a failure, in bytes.
const TAIL_BYTES: usize = 4000;

/// The line that reports lists which could not be fetched.
const UNFETCHED: &str = "gatewren: unfetched";

/// The maximum number of errors about lists in a result.
const MAX_LIST_ERRORS: usize = 5;

/// The prefix of the steps' own lines.
const MARK: &str = "gatewren: ";

/// The changes of an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateApplied {
    /// Whether all of it was done, from lists that are up to date; otherwise the changes that were made are listed.
    pub completed: bool,
    /// Package lists that could not be fetched: newer versions may exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refresh_problems: Vec<String>,
    /// The packages with another version now, sorted by name.
    pub upgraded: Vec<ChangedPackage>,
    /// The new packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub installed: Vec<ChangedPackage>,
    /// The removed packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ChangedPackage>,
    /// The total number of changed packages.
    pub total: usize,
    /// Whether some of them are not shown.
    pub truncated: bool,
    /// Packages that are only partly installed, and do not work until the installation is
    /// completed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Whether a reboot is required now.
    pub reboot_required: bool,
    /// The packages that require it, if known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reboot_packages: Vec<String>,
    /// The end of apt's output, if not all was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tail: Option<String>,
}

/// A changed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedPackage {
    /// Its name.
    pub name: String,
    /// Its architecture, such as `amd64` or `all`.
    pub architecture: String,
    /// The version before; absent if it was not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version now; absent if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl UpdateApplied {
    /// Parses the output of the helper's steps.
    ///
    /// # Errors
    /// When they failed before changing anything, and when lists could not be fetched and nothing was changed.
    pub fn of(finished: &FinishedOperation) -> Result<Self, BackendError> {
        let output = finished.stdout.text_lossy();
        let Some((before, after)) = output.rsplit_once("gatewren: done ") else {
            let stderr = neutralise(&finished.stderr.text_lossy()).into_owned();
            let none = || BackendError::new(ErrorKind::Failed, "apt did not report what it did");
            return Err(operation_error(&finished.ending, apt_errors(&stderr)).unwrap_or_else(none));
        };
        let succeeded = finished.ending == OperationEnd::SUCCESS;
        let mut applied = Self::read(after);
        if before.lines().any(|line| line == UNFETCHED) {
            applied.refresh_problems = list_errors(&finished.stderr.text_lossy());
        }
        if succeeded && applied.total == 0 && !applied.refresh_problems.is_empty() {
            let message = format!(
                "nothing was upgraded, because the package lists could not be fetched: {}",
                applied.refresh_problems.join("; ")
            );
            return Err(BackendError::new(ErrorKind::Failed, message));
        }
        applied.completed = succeeded && applied.refresh_problems.is_empty();
        applied.output_tail = (!succeeded).then(|| {
            let stderr = finished.stderr.text_lossy();
            neutralise(tail(&format!("{before}{stderr}"))).into_owned()
        });
        Ok(applied)
    }

    /// Parses the differences, as the last step prints them.
    pub(super) fn read(output: &str) -> Self {
        let mut applied = Self::default();
        for line in output.lines().filter_map(|line| line.strip_prefix(MARK)) {
            let words: Vec<&str> = line.split(' ').collect();
            match *words.as_slice() {
                ["upgraded", name, architecture, from, to] => {
                    let package = changed_package(name, architecture, Some(from), Some(to));
                    applied.upgraded.push(package);
                }
                ["installed", name, architecture, to] => {
                    let package = changed_package(name, architecture, None, Some(to));
                    applied.installed.push(package);
                }
                ["removed", name, architecture, from] => {
                    let package = changed_package(name, architecture, Some(from), None);
                    applied.removed.push(package);
                }
                ["unfinished", name, _] if applied.unfinished.len() < MAX_LISTED => {
                    applied.unfinished.push(word(name));
                }
                _ => {}
            }
        }
        for list in [
            &mut applied.upgraded,
            &mut applied.installed,
            &mut applied.removed,
        ] {
            applied.total += list.len();
            applied.truncated |= list.len() > MAX_LISTED;
            list.truncate(MAX_LISTED);
        }
        let reboot = parse_reboot_packages(output);
        applied.reboot_required = reboot.is_some();
        applied.reboot_packages = reboot.unwrap_or_default();
        applied
    }
}

/// Returns apt's errors about lists that it could not fetch.
fn list_errors(stderr: &str) -> Vec<String> {
    let is_error = |line: &&str| line.starts_with("E: ") || line.contains("Failed to fetch");
    let mut errors: Vec<String> = stderr
        .lines()
        .map(str::trim)
        .filter(is_error)
        .map(sentence)
        .collect();
    errors.dedup();
    errors.truncate(MAX_LIST_ERRORS);
    if errors.is_empty() {
        errors.push("apt did not name the list".to_owned());
    }
    errors
}

fn changed_package(
    name: &str,
    architecture: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> ChangedPackage {
    ChangedPackage {
        name: word(name),
        architecture: word(architecture),
        from: from.map(word),
        to: to.map(word),
    }
}

/// Returns the packages that require a reboot, if the steps report that one is required.
pub fn parse_reboot_packages(output: &str) -> Option<Vec<String>> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(MARK));
    let mut lines = lines
        .filter_map(|line| line.strip_prefix("reboot"))
        .peekable();
    lines.peek()?;
    let names: BTreeSet<String> = lines
        .map(|name| word(name.trim()))
        .filter(|name| !name.is_empty())
        .take(MAX_LISTED)
        .collect();
    Some(names.into_iter().collect())
}

/// Returns apt's errors without its warnings; everything if it reports no error.
fn apt_errors(stderr: &str) -> &str {
    let at = stderr.find("E: ").unwrap_or_default();
    tail(stderr.get(at..).unwrap_or(stderr))
}

fn tail(text: &str) -> &str {
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES));
    text.split_at(from).1
}

/// Sanitizes a word: a repository controls the names of its packages.
pub fn word(text: &str) -> String {
    plain_line(text, MAX_WORD)
}

/// Sanitizes a longer text.
pub fn sentence(text: &str) -> String {
    plain_line(text, MAX_SENTENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper_client::CapturedOutput;

    fn finished_operation(code: i32, stdout: &str, stderr: &str) -> FinishedOperation {
        let captured = |text: &str| CapturedOutput {
            head: text.into(),
            tail: Vec::new(),
            total_bytes: text.len() as u64,
        };
        FinishedOperation {
            ending: OperationEnd::Exited { code },
            duration_ms: 1,
            stdout: captured(stdout),
            stderr: captured(stderr),
        }
    }

    const SAID: &str = "\
Setting up a (2) ...
gatewren: upgraded forged all 1 2
gatewren: done 0
gatewren: installed linux-image-7 amd64 7.1
gatewren: removed old all 1
gatewren: upgraded libc6 amd64 2.36-9 2.36-10
gatewren: upgraded libc6 i386 2.36-9 2.36-10
gatewren: reboot
gatewren: reboot libc6
gatewren: reboot libc6
";

    #[test]
    fn what_is_different_is_data() {
        let applied = UpdateApplied::of(&finished_operation(0, SAID, "W: slow\n")).unwrap();
        let names: Vec<&str> = applied
            .upgraded
            .iter()
            .map(|p| p.architecture.as_str())
            .collect();
        assert_eq!(names, ["amd64", "i386"]);
        assert_eq!(applied.upgraded[0].from.as_deref(), Some("2.36-9"));
        assert_eq!(applied.installed[0].to.as_deref(), Some("7.1"));
        assert_eq!((applied.removed[0].to.as_deref(), applied.total), (None, 4));
        assert!(applied.completed && applied.reboot_required && applied.output_tail.is_none());
        assert_eq!(applied.reboot_packages, ["libc6"]);
    }

    #[test]
    fn lists_that_could_not_be_fetched_are_never_a_success() {
        let stderr = "E: Failed to fetch http://deb.example/InRelease  Could not resolve 'deb.example'\nW: slow\n";
        let nothing = "gatewren: unfetched\nThere is nothing to upgrade.\ngatewren: done 0\n";
        let error = UpdateApplied::of(&finished_operation(0, nothing, stderr)).unwrap_err();
        assert!(
            error.message.contains("Could not resolve 'deb.example'"),
            "{error}"
        );
        let some = format!("gatewren: unfetched\n{SAID}");
        let applied = UpdateApplied::of(&finished_operation(0, &some, stderr)).unwrap();
        assert!(!applied.completed && applied.total == 4);
        assert_eq!(applied.refresh_problems.len(), 1);
    }

    #[test]
    fn what_went_wrong_on_the_way_is_told_with_what_was_done() {
        let output =
            "Setting up bad (2) ...\u{1b}[31m\ngatewren: done 100\ngatewren: unfinished bad all\n";
        let applied = UpdateApplied::of(&finished_operation(
            100,
            output,
            "E: dpkg returned an error\n",
        ))
        .unwrap();
        assert!(!applied.completed && applied.total == 0);
        assert_eq!(applied.unfinished, ["bad"]);
        let tail = applied.output_tail.unwrap();
        assert!(tail.contains("Setting up bad (2) ...^[[31m"), "{tail}");
        assert!(tail.ends_with("E: dpkg returned an error"), "{tail}");
    }

    #[test]
    fn what_was_not_begun_is_an_error_in_apts_words() {
        let stderr = "W: slow\nE: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (dpkg)\n";
        let error = UpdateApplied::of(&finished_operation(
            100,
            "Reading package lists...\n",
            stderr,
        ))
        .unwrap_err();
        assert!(
            error.message.starts_with("E: Could not get lock"),
            "{error}"
        );
        assert!(error.message.contains("process 7 (dpkg)"), "{error}");
    }

    #[test]
    fn a_tail_is_whole_characters() {
        let long = "ä".repeat(TAIL_BYTES);
        assert_eq!(tail(&long).len(), TAIL_BYTES);
        assert_eq!(tail(&format!("{long}a")).len(), TAIL_BYTES - 1);
        assert_eq!(tail(" a "), "a");
    }
}
