//! The container runtimes of this host, and the key of `helper.toml` that names those that are served.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::console::program::is_there;
use super::helper_file::{HelperEntry, HelperFile};
use gatewren_base::config::{HelperPolicy, RuntimeKind};
use gatewren_base::sys::{lxc_containers_that_run, sanitize};
use gatewren_helper::users_with_podman;

/// The key in `helper.toml`.
const KEY: &str = "runtimes";

/// The program of Docker's daemon.
const DOCKERD: &str = "dockerd";

/// The most containers of LXC that are named; the others are counted.
const MAX_NAMED: usize = 5;

/// What serving a runtime means.
pub const MEANING: &str = "\
A client whose policy allows commands in containers can then run them as root in those of the runtimes below. A
container that has the host's devices, files or processes counts as the host: a command in it also needs host_shell.";

/// The runtimes that are installed, and those that the helper's policy serves.
pub struct HostRuntimes {
    path: PathBuf,
    policy: HelperPolicy,
}

impl HostRuntimes {
    /// Reads the policy of the helper.
    ///
    /// # Errors
    /// Fails if the helper would reject the file too.
    pub fn read(path: PathBuf) -> Result<Self, String> {
        let policy = HelperPolicy::load(&path).map_err(|e| e.to_string())?;
        Ok(Self { path, policy })
    }

    /// The file with the policy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The runtimes that are served.
    pub fn served(&self) -> &[RuntimeKind] {
        &self.policy.runtimes
    }

    /// The runtimes that are installed.
    pub fn found(&self) -> Vec<RuntimeKind> {
        RuntimeKind::ALL
            .into_iter()
            .filter(|kind| self.trace(*kind).is_some())
            .collect()
    }

    /// The runtimes that are installed and not served.
    pub fn unserved(&self) -> Vec<RuntimeKind> {
        let mut found = self.found();
        found.retain(|kind| !self.policy.serves(*kind));
        found
    }

    /// The users whose own Podman has a socket, and is not served.
    pub fn unserved_users(&self) -> Vec<String> {
        let mut found = users_with_podman();
        found.retain(|user| !self.policy.serves_podman_of(user));
        found
    }

    /// Returns how a runtime was found: its socket, or that its programs are installed; `None` if it was not.
    pub fn trace(&self, kind: RuntimeKind) -> Option<String> {
        match self.policy.socket(kind) {
            Some(socket) => socket.exists().then(|| socket.display().to_string()),
            None if kind == RuntimeKind::DockerInLxc => {
                inner_trace(&lxc_containers_that_run(DOCKERD))
            }
            None => is_there("lxc-attach").then(|| "its programs are installed".to_owned()),
        }
    }

    /// Says which runtimes and users with a Podman are here and not served, and how to serve them.
    pub fn unserved_words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let unserved = self.unserved();
        if !unserved.is_empty() {
            let options = [self.served(), &unserved].concat();
            let options: Vec<String> = options
                .iter()
                .map(|kind| format!("--runtime {kind}"))
                .collect();
            lines.push(format!(
                "  containers of these runtimes are not served: {}; to serve them:\n    gatewren init --yes {}",
                runtime_words(&unserved),
                options.join(" ")
            ));
        }
        let users = self.unserved_users();
        if let Some(first) = users.first() {
            lines.push(format!(
                "  these users have a Podman of their own that is not served: {}; to serve one:\n    \
                 podman_users = [{first:?}] in {}",
                users.join(", "),
                self.path.display()
            ));
        }
        lines
    }

    /// Makes the policy serve exactly these runtimes; returns whether that is a change. Restores the file if the
    /// helper would reject it.
    pub fn serve(&self, runtimes: &[RuntimeKind]) -> Result<bool, String> {
        if sorted(self.served()) == sorted(runtimes) {
            return Ok(false);
        }
        let words: Vec<String> = runtimes
            .iter()
            .map(|kind| format!("{:?}", kind.word()))
            .collect();
        let entry = HelperEntry {
            key: KEY,
            value: format!("[{}]", words.join(", ")),
        };
        HelperFile::new(self.path.clone())
            .set(&[entry], |policy| policy.runtimes == runtimes)
            .map(|()| true)
    }
}

/// Returns how Docker inside LXC was found: the containers of LXC, the first ones by name; `None` if there are none.
fn inner_trace(containers: &BTreeSet<String>) -> Option<String> {
    let named: Vec<String> = containers
        .iter()
        .take(MAX_NAMED)
        .map(|name| sanitize(name))
        .collect();
    let more = match containers.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = named.first()?;
    Some(match containers.len() {
        1 => format!("dockerd runs in the container {first} of LXC"),
        _ => format!(
            "dockerd runs in the containers {}{more} of LXC",
            named.join(", ")
        ),
    })
}

/// Parses runtimes that are separated by spaces or commas.
pub fn parse_runtimes(text: &str) -> Result<Vec<RuntimeKind>, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let parsed = words.map(|word| word.to_lowercase().parse().map_err(|e| format!("{e}")));
    parsed
        .collect::<Result<Vec<_>, _>>()
        .map(|all| sorted(&all))
}

/// Returns the words of runtimes, separated by spaces.
pub fn runtime_words(runtimes: &[RuntimeKind]) -> String {
    let words: Vec<&str> = runtimes.iter().map(|kind| kind.word()).collect();
    words.join(" ")
}

/// Returns the runtimes in one order, each once.
fn sorted(runtimes: &[RuntimeKind]) -> Vec<RuntimeKind> {
    let all = RuntimeKind::ALL.into_iter();
    all.filter(|kind| runtimes.contains(kind)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use gatewren_base::sys::Scratch;
    use std::os::unix::fs::PermissionsExt as _;

    use RuntimeKind::{Docker, Lxc, Podman};

    fn policy_file(scratch: &Scratch, text: &str) -> PathBuf {
        let folder = scratch.join("etc");
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let path = folder.join("helper.toml");
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_rerun_changes_nothing() {
        let scratch = Scratch::new();
        let path = policy_file(&scratch, "power = \"on\"\n");
        let runtimes = HostRuntimes::read(path.clone()).unwrap();
        assert_eq!(runtimes.served(), [Lxc]);
        assert_eq!(runtimes.serve(&[Lxc, Podman]), Ok(true));
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(
            written,
            "power = \"on\"\nruntimes = [\"lxc\", \"podman\"]\n"
        );
        let again = HostRuntimes::read(path.clone()).unwrap();
        assert_eq!(again.served(), [Lxc, Podman]);
        assert_eq!(again.serve(&[Podman, Lxc]), Ok(false));
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
    }

    #[test]
    fn a_socket_that_is_there_is_found() {
        let scratch = Scratch::new();
        let socket = scratch.join("docker.sock");
        let text =
            format!("docker_socket = {socket:?}\npodman_socket = \"/nonexistent/podman.sock\"\n");
        let path = policy_file(&scratch, &text);
        let runtimes = HostRuntimes::read(path).unwrap();
        assert_eq!(runtimes.trace(Docker), None);
        fs::write(&socket, "").unwrap();
        assert_eq!(runtimes.trace(Docker), Some(socket.display().to_string()));
        assert!(runtimes.unserved().contains(&Docker) && !runtimes.found().contains(&Podman));
    }

    #[test]
    fn words_that_are_no_runtime_are_refused() {
        assert_eq!(parse_runtimes("podman, lxc lxc"), Ok(vec![Lxc, Podman]));
        assert_eq!(parse_runtimes("Docker"), Ok(vec![Docker]));
        let refused = parse_runtimes("nspawn").unwrap_err();
        assert!(refused.contains("lxc, docker, podman"), "{refused}");
        assert_eq!(runtime_words(&[Lxc, Docker]), "lxc docker");
    }
}
