//! A user of this host whose own Podman is served, and where it is.

use std::path::PathBuf;

use gatewren_base::sys::ProcessCredentials;
use gatewren_base::sys::source::text;
use gatewren_wire::operations::OperationRefusal;

use crate::processes::accounts::{Account, account, accounts, groups};

/// Where systemd-logind keeps the runtime directories of users, by their ids.
const RUNTIME_DIRECTORIES: &str = "/run/user";

/// A user whose Podman runs without root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodmanUser {
    account: Account,
    groups: Vec<u32>,
}

impl PodmanUser {
    /// Finds the user in the host's user database.
    ///
    /// # Errors
    /// Fails if the user does not exist, or is root.
    pub fn find(name: &str) -> Result<Self, OperationRefusal> {
        let found = account(&text("/etc/passwd").unwrap_or_default(), name);
        // A number would be the id of another account.
        let Some(account) = found.filter(|account| account.name == name) else {
            return Err(OperationRefusal::failed(format!(
                "user '{name}' not found in /etc/passwd; remove it from podman_users in helper.toml, or create it"
            )));
        };
        if account.uid == 0 {
            return Err(OperationRefusal::failed(
                "the Podman of root is served by runtimes in helper.toml; remove root from podman_users",
            ));
        }
        let groups = groups(&text("/etc/group").unwrap_or_default(), &account);
        Ok(Self { account, groups })
    }

    /// The user's login name.
    pub fn name(&self) -> &str {
        &self.account.name
    }

    /// The user's id.
    pub fn uid(&self) -> u32 {
        self.account.uid
    }

    /// The user's home directory.
    pub fn home(&self) -> &str {
        &self.account.home
    }

    /// The user's ids, for a program that runs as the user.
    pub fn credentials(&self) -> ProcessCredentials {
        ProcessCredentials {
            uid: self.account.uid,
            gid: self.account.gid,
            groups: self.groups.clone(),
        }
    }

    /// The directory of the user's sockets, which exists while the user is logged in or lingers.
    pub fn runtime_directory(&self) -> PathBuf {
        PathBuf::from(RUNTIME_DIRECTORIES).join(self.account.uid.to_string())
    }

    /// The socket of the user's Podman.
    pub fn socket(&self) -> PathBuf {
        self.runtime_directory().join("podman/podman.sock")
    }
}

/// The most users that are named because they have a Podman; further ones are not.
const MAX_FOUND: usize = 64;

/// Returns the users other than root whose Podman has a socket now, at most 64.
pub fn users_with_podman() -> Vec<String> {
    let passwd = text("/etc/passwd").unwrap_or_default();
    let users = accounts(&passwd).filter(|account| account.uid != 0);
    let users = users.map(|account| PodmanUser {
        account,
        groups: Vec::new(),
    });
    let with_socket = users.filter(|user| user.socket().exists());
    with_socket
        .map(|user| user.account.name)
        .take(MAX_FOUND)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_users_other_than_root_have_a_podman_of_their_own() {
        let daemon = PodmanUser::find("daemon").unwrap();
        let socket = format!("/run/user/{}/podman/podman.sock", daemon.uid());
        assert_eq!(daemon.socket(), PathBuf::from(socket));
        let credentials = daemon.credentials();
        assert_eq!(credentials.uid, daemon.uid());
        assert_eq!(credentials.groups.first(), Some(&credentials.gid));
        for (name, words) in [
            ("root", "runtimes"),
            ("no-such-user", "podman_users"),
            ("1", "not found"),
        ] {
            let refused = PodmanUser::find(name).unwrap_err();
            assert!(refused.message.contains(words), "{}", refused.message);
        }
    }
}
