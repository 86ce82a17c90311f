//! Package updates on the host and in containers: available ones as apt reports them, upgrades, and history.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::spawn_blocking;

use crate::helper_client::{
    Capture, ContainerRef, FinishedOperation, HelperClient, Operation, OperationEnd,
    OperationLimits, UpdateOrder, UpdateScope,
};
use gatewren_base::config::Reach;
use gatewren_base::sys::rfc3339;

use super::access_filter::AccessFilter;
use super::error::{BackendError, ErrorKind};
use super::host::reboot_packages;
use super::long_work::{CallJob, LongOperation, run_long};
use super::records::zone_of;
use super::request::{answer, limits, operation_error};
use super::source::HostTree;
use super::update_applied::{UpdateApplied, parse_reboot_packages, sentence, word};
use super::update_history::{OLDEST_FILE, UpdateHistory, update_runs};

/// The timeout for reading apt's lists, which takes a small host many seconds.
const QUESTION: Duration = Duration::from_mins(2);

/// The timeout for downloading lists.
const FETCHING: Duration = Duration::from_mins(20);

/// The timeout for downloading packages; the helper does not interrupt their installation.
const APPLYING: Duration = Duration::from_hours(24);

/// The maximum output of apt; its end reports what was done.
const OUTPUT_BYTES: u64 = 64 << 20;

/// How much of the output is kept.
const CAPTURE: Capture = Capture {
    head: 512 * 1024,
    tail: 1024 * 1024,
};

/// The maximum number of errors about lists in a result.
const MAX_PROBLEMS: usize = 10;

/// The exit code that reports a missing file.
const NO_SUCH_FILE: OperationEnd = OperationEnd::Exited { code: 3 };

/// The maximum number of packages in a result, security updates first; the rest is only counted.
const MAX_LISTED: usize = 200;

/// What changes when apt's lists are refreshed, even if nothing is new; stamps are from apt's daily
/// jobs.
const REFRESHED: [&str; 4] = [
    "var/lib/apt/periodic/update-success-stamp",
    "var/lib/apt/periodic/update-stamp",
    "var/lib/apt/lists/partial",
    "var/lib/apt/lists",
];

/// The available package updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdateCheck {
    /// The packages that would be upgraded or newly installed: security updates first, then by
    /// name.
    pub packages: Vec<Upgrade>,
    /// The total number of packages.
    pub total: usize,
    /// The number of security updates.
    pub security: usize,
    /// Whether some packages are not shown.
    pub truncated: bool,
    /// Packages that the upgrade would remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The time of the last refresh of the package lists, RFC 3339; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lists_refreshed: Option<String>,
    /// Errors of a requested refresh; lists that could not be downloaded are unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refresh_problems: Vec<String>,
    /// Whether an installed update requires a reboot.
    pub reboot_required: bool,
    /// The packages that require it, if known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reboot_packages: Vec<String>,
}

/// An available upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Upgrade {
    /// Its name.
    pub name: String,
    /// Its architecture, such as `amd64` or `all`.
    pub architecture: String,
    /// The installed version; absent if it would be new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The new version.
    pub candidate: String,
    /// The origin of the new version, such as `Debian:12.5/stable`.
    pub origin: String,
    /// Whether it is from a repository of security updates.
    pub security: bool,
}

/// apt on the host and in containers; queries need a view.
#[derive(Debug, Clone)]
pub struct Updates {
    helper: HelperClient,
    tree: HostTree,
}

/// The instances of apt that a caller may access.
#[derive(Debug)]
pub struct UpdatesView<'u> {
    updates: &'u Updates,
    access: AccessFilter,
    agent: &'u str,
    reference: &'u str,
}

/// The packages to upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeRequest {
    /// The container; the host if absent.
    pub container: Option<ContainerRef>,
    /// Which packages.
    pub scope: UpdateScope,
    /// Whether other packages may be removed for it.
    pub removals: bool,
}

impl Updates {
    /// Returns access through this helper.
    pub fn new(helper: HelperClient) -> Self {
        let tree = HostTree::of_this_machine();
        Self { helper, tree }
    }

    /// Whether the host has apt; its containers then may have it too.
    pub fn are_here() -> bool {
        HostTree::of_this_machine().has("usr/bin/apt-get")
    }

    /// Returns access for a caller; `reference` identifies the call in the helper's log.
    pub fn view_for<'u>(
        &'u self,
        reach: &Reach,
        agent: &'u str,
        reference: &'u str,
    ) -> UpdatesView<'u> {
        UpdatesView {
            updates: self,
            access: AccessFilter::of(reach),
            agent,
            reference,
        }
    }
}

impl UpdatesView<'_> {
    /// Returns the available updates from apt's lists, downloaded first if `refresh` is set.
    ///
    /// # Errors
    /// When the owner does not allow the helper to query or download, and when apt fails.
    pub async fn check(
        &self,
        container: Option<&ContainerRef>,
        refresh: bool,
        job: Option<CallJob>,
    ) -> Result<UpdateCheck, BackendError> {
        let (check, fetch) = (
            |container| Operation::UpdateCheck { container },
            |container| Operation::UpdateRefresh { container },
        );
        if !refresh {
            let output = self.run(container, check, QUESTION, job).await?;
            return self.read(answer(&output)?, container.is_some()).await;
        }
        let refresh = self.run(container, fetch, FETCHING, job).await?;
        let problems = problems(&refresh)?;
        let output = self.run(container, check, QUESTION, None).await?;
        let check = self.read(answer(&output)?, container.is_some()).await?;
        Ok(UpdateCheck {
            refresh_problems: problems,
            ..check
        })
    }

    /// Upgrades packages. Dropping the future does not stop the upgrade once there is a job.
    ///
    /// # Errors
    /// When the owner does not allow it, and when nothing was changed because apt did not start.
    pub async fn apply(
        &self,
        wanted: UpgradeRequest,
        job: Option<CallJob>,
    ) -> Result<UpdateApplied, BackendError> {
        let order = |container| {
            Operation::UpdateApply(UpdateOrder {
                container,
                scope: wanted.scope.clone(),
                removals: wanted.removals,
                agent: self.agent.to_owned(),
            })
        };
        let run = self.run(wanted.container.as_ref(), order, APPLYING, job);
        UpdateApplied::of(&run.await?)
    }

    /// Returns apt's runs, newest first: up to `limit` after the first `offset`.
    ///
    /// # Errors
    /// When the owner does not allow it.
    pub async fn history(
        &self,
        container: Option<&ContainerRef>,
        offset: usize,
        limit: usize,
    ) -> Result<UpdateHistory, BackendError> {
        let mut runs = Vec::new();
        let asked = container.map(|name| self.access.name(name));
        let zone = zone_of(&self.updates.helper, asked.as_ref(), self.reference).await;
        // One more than requested shows whether there are more.
        let enough = offset.saturating_add(limit).saturating_add(1);
        for file in 0..=OLDEST_FILE {
            let print = |container| Operation::UpdateHistory { container, file };
            let output = self.run(container, print, QUESTION, None).await?;
            if output.ending == NO_SUCH_FILE {
                // After a rotation the current file does not exist until the next run of apt.
                if file > 0 {
                    break;
                }
                continue;
            }
            runs.extend(update_runs(&answer(&output)?, &zone));
            if runs.len() >= enough {
                break;
            }
        }
        Ok(UpdateHistory::page(runs, offset, limit))
    }

    async fn read(&self, output: String, in_container: bool) -> Result<UpdateCheck, BackendError> {
        let tree = (!in_container).then(|| self.updates.tree.clone());
        let read = spawn_blocking(move || read(&output, tree.as_ref()));
        read.await.map_err(|cause| {
            BackendError::new(ErrorKind::Failed, format!("reading failed: {cause}"))
        })
    }

    /// Runs an operation on the host, or on a container; an inaccessible one is queried under a
    /// name that no container has.
    async fn run(
        &self,
        container: Option<&ContainerRef>,
        operation: impl FnOnce(Option<ContainerRef>) -> Operation,
        time: Duration,
        job: Option<CallJob>,
    ) -> Result<FinishedOperation, BackendError> {
        if container.is_none() {
            self.access.host()?;
        }
        let query_name = container.map(|name| self.access.name(name));
        let long = LongOperation {
            operation: operation(query_name.clone()),
            limits: OperationLimits {
                output_bytes: OUTPUT_BYTES,
                ..limits(time)
            },
            capture: CAPTURE,
        };
        let mut done = run_long(&self.updates.helper, long, job, self.reference).await?;
        if let OperationEnd::Refused(refusal) = &mut done.ending
            && let (Some(name), Some(query_name)) = (container, &query_name)
        {
            refusal.message = refusal.message.replace(query_name.as_str(), name.as_str());
        }
        Ok(done)
    }
}

/// Returns apt's error messages of a refresh.
fn problems(fetched: &FinishedOperation) -> Result<Vec<String>, BackendError> {
    let stderr = fetched.stderr.text_lossy();
    let messages = stderr.lines().filter(|line| {
        let line = line.trim_start();
        line.starts_with("E:") || line.starts_with("W:") || line.starts_with("Err:")
    });
    let problems: Vec<String> = messages.take(MAX_PROBLEMS).map(sentence).collect();
    match &fetched.ending {
        OperationEnd::Exited { .. } if !problems.is_empty() => Ok(problems),
        ending => operation_error(ending, &stderr).map_or(Ok(problems), Err),
    }
}

/// Parses apt's output. A container has no tree; its output contains the other facts too.
fn read(output: &str, tree: Option<&HostTree>) -> UpdateCheck {
    let mut packages: Vec<Upgrade> = output.lines().filter_map(upgrade).collect();
    packages.sort_by_cached_key(|one| (!one.security, one.name.clone(), one.architecture.clone()));
    let total = packages.len();
    let security = packages.iter().filter(|upgrade| upgrade.security).count();
    packages.truncate(MAX_LISTED);
    let mut removed: Vec<String> = output
        .lines()
        .filter_map(|line| line.strip_prefix("Remv ")?.split(' ').next().map(word))
        .collect();
    removed.sort();
    removed.truncate(MAX_LISTED);
    let reboot = match tree {
        Some(tree) => reboot_of_host(tree),
        None => parse_reboot_packages(output),
    };
    UpdateCheck {
        truncated: packages.len() < total,
        packages,
        total,
        security,
        removed,
        lists_refreshed: match tree {
            Some(tree) => refreshed_ms(tree),
            None => refreshed_inside_ms(output),
        }
        .map(rfc3339),
        refresh_problems: Vec::new(),
        reboot_required: reboot.is_some(),
        reboot_packages: reboot.unwrap_or_default(),
    }
}

/// Returns the packages that require a reboot of the host, if one is required.
fn reboot_of_host(tree: &HostTree) -> Option<Vec<String>> {
    let packages = || tree.text("run/reboot-required.pkgs").unwrap_or_default();
    tree.has("run/reboot-required")
        .then(|| reboot_packages(&packages()))
}

/// Returns the newest time that a container reports for its lists.
fn refreshed_inside_ms(output: &str) -> Option<u64> {
    let seconds = output.lines().filter_map(|line| {
        let seconds = line.strip_prefix("gatewren: lists ")?;
        seconds.parse::<u64>().ok()
    });
    seconds.max()?.checked_mul(1000)
}

/// Returns when apt last downloaded its lists; `None` if it has none.
fn refreshed_ms(tree: &HostTree) -> Option<u64> {
    let lists = tree.names("var/lib/apt/lists");
    let moments = REFRESHED
        .iter()
        .filter_map(|path| modified_ms(&tree.path(path)));
    let has_lists = lists.iter().any(|name| name.ends_with("Release"));
    moments.max().filter(|_| has_lists)
}

fn modified_ms(path: &Path) -> Option<u64> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Parses a line of a simulated upgrade, such as
/// `Inst libc6 [2.36-9] (2.36-9+deb12u4 Debian:12.4/stable, Debian-Security:12/stable-security [amd64]) []`.
fn upgrade(line: &str) -> Option<Upgrade> {
    let rest = line.strip_prefix("Inst ")?;
    let (name, rest) = rest.split_once(' ')?;
    let (installed, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (installed, rest) = rest.split_once("] ")?;
            (Some(word(installed)), rest)
        }
        None => (None, rest),
    };
    let (inside, _) = rest.strip_prefix('(')?.rsplit_once(')')?;
    let (candidate, rest) = inside.split_once(' ')?;
    let (origins, architecture) = rest.rsplit_once('[')?;
    let origins: Vec<&str> = origins.split(", ").map(str::trim).collect();
    Some(Upgrade {
        name: word(name),
        architecture: word(architecture.trim_end_matches(']')),
        installed,
        candidate: word(candidate),
        security: origins.iter().any(|origin| is_security(origin)),
        origin: word(&origins.join(", ")),
    })
}

/// `Debian-Security:12/stable-security` on Debian, `Ubuntu:22.04/jammy-security` on Ubuntu.
fn is_security(origin: &str) -> bool {
    let label = origin.split(':').next().unwrap_or_default();
    label.to_ascii_lowercase().ends_with("-security") || origin.ends_with("-security")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    const SAID: &str = "\
Reading package lists...
Building dependency tree...
Reading state information...
Calculating upgrade...
The following packages will be upgraded:
  base-files libc6 zlib1g
Remv old-lib [1.0] [other:amd64 ]
Inst base-files [12.4+deb12u4] (12.4+deb12u5 Debian:12.5/stable [amd64])
Conf base-files (12.4+deb12u5 Debian:12.5/stable [amd64])
Inst libc6 [2.36-9] (2.36-9+deb12u4 Debian:12.4/stable, Debian-Security:12/stable-security [amd64]) [libc6:amd64 ]
Inst linux-image-6.1 (6.1.69-1 Debian:12.5/stable [amd64])
Inst tzdata [2023c-5] (2024a-0 local [all])
Inst broken
Inst worse [1 (2 x
";

    #[test]
    fn what_apt_would_do_is_read_from_what_it_says() {
        let scratch = Scratch::new();
        let check = read(SAID, Some(&HostTree::below(scratch.path())));
        let names: Vec<&str> = check.packages.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["libc6", "base-files", "linux-image-6.1", "tzdata"]);
        assert_eq!(
            (check.total, check.security, check.truncated),
            (4, 1, false)
        );
        assert_eq!(check.removed, ["old-lib"]);
        assert_eq!(
            check.packages[0],
            Upgrade {
                name: "libc6".into(),
                architecture: "amd64".into(),
                installed: Some("2.36-9".into()),
                candidate: "2.36-9+deb12u4".into(),
                origin: "Debian:12.4/stable, Debian-Security:12/stable-security".into(),
                security: true,
            }
        );
        assert_eq!(check.packages[2].installed, None);
        assert_eq!(check.packages[3].origin, "local");
        assert_eq!(check.lists_refreshed, None);
        assert!(!check.reboot_required);
    }

    #[test]
    fn security_updates_are_known_by_where_they_come_from() {
        assert!(is_security("Debian-Security:12/stable-security"));
        assert!(is_security("Ubuntu:22.04/jammy-security"));
        for other in ["Debian:12.5/stable", "security-tools:1/main", ""] {
            assert!(!is_security(other), "{other}");
        }
    }

    #[test]
    fn many_are_counted_and_the_important_ones_shown() {
        let line = |n: usize| format!("Inst p{n:04} [1] (2 Debian:12/stable [all])\n");
        let mut output: String = (0..MAX_LISTED + 5).map(line).collect();
        output.push_str("Inst zzz [1] (2 Debian-Security:12/stable-security [all])\n");
        let scratch = Scratch::new();
        let check = read(&output, Some(&HostTree::below(scratch.path())));
        assert_eq!(
            (check.total, check.packages.len()),
            (MAX_LISTED + 6, MAX_LISTED)
        );
        assert!(check.truncated && check.packages[0].name == "zzz");
    }

    #[test]
    fn a_container_says_itself_how_old_its_lists_are_and_whether_it_waits() {
        let output = "Inst a [1] (2 Debian:12/stable [all])\ngatewren: lists 1700000000\n\
                    gatewren: lists 1700000100\ngatewren: reboot\ngatewren: reboot libc6\n";
        let check = read(output, None);
        assert_eq!(
            check.lists_refreshed.as_deref(),
            Some("2023-11-14T22:15:00.000Z")
        );
        assert!(check.reboot_required && check.reboot_packages == ["libc6"]);
        let none = read("", None);
        assert!(!none.reboot_required && none.lists_refreshed.is_none());
    }

    #[test]
    fn a_reboot_that_waits_and_the_age_of_the_lists_are_told() {
        let scratch = Scratch::new();
        for folder in ["run", "var/lib/apt/lists/partial"] {
            fs::create_dir_all(scratch.join(folder)).unwrap();
        }
        let look = || read("", Some(&HostTree::below(scratch.path())));
        assert_eq!(look().lists_refreshed, None, "there are none");
        fs::write(scratch.join("var/lib/apt/lists/_repo_._Release"), "").unwrap();
        fs::write(scratch.join("run/reboot-required"), "").unwrap();
        fs::write(scratch.join("run/reboot-required.pkgs"), "libc6\nlibc6\n").unwrap();
        let check = look();
        assert!(check.reboot_required && check.lists_refreshed.is_some());
        assert_eq!(check.reboot_packages, ["libc6"]);
    }
}
