//! Which containers of a user's Podman have the rights of that user on the host. None has more than these.

use std::path::{Path, PathBuf};

use super::facts::EngineMount;
use super::host_rights::{host_rights, normalized};
use super::inspect::InspectedContainer;
use super::podman_user::PodmanUser;
use super::real_mounts::running_host_rights;

/// Names in a home directory, beside those that begin with a dot. Programs of the user run what is in them.
const PROGRAM_FOLDERS: [&str; 1] = ["bin"];

/// Returns what gives a container the rights of its user, a phrase each: what would give a container of root the rights
/// of root, and the user's sockets, home directory or settings. The user's Podman says what it has, so this is only as
/// true as the user wants; a command in it never has more than the user's rights.
pub fn user_rights(container: &InspectedContainer, user: &PodmanUser) -> Vec<String> {
    let rights = host_rights(container);
    let phrases = rights.iter().map(ToString::to_string);
    phrases.chain(of_user(container, user)).collect()
}

/// Returns the same for a running container with this first process, with what only the kernel shows.
pub fn running_user_rights(
    container: &InspectedContainer,
    user: &PodmanUser,
    init: i32,
) -> Vec<String> {
    let mut phrases = running_host_rights(container, init);
    phrases.extend(of_user(container, user));
    phrases
}

fn of_user(container: &InspectedContainer, user: &PodmanUser) -> Vec<String> {
    let mounts = container.mounts.iter();
    mounts
        .filter_map(|mount| right_of_mount(mount, user))
        .collect()
}

fn right_of_mount(mount: &EngineMount, user: &PodmanUser) -> Option<String> {
    if mount.source.is_empty() || mount.kind == "tmpfs" {
        return None;
    }
    let source = normalized(&mount.source);
    let (home, runtime) = (Path::new(user.home()), user.runtime_directory());
    if source.starts_with(&runtime) || runtime.starts_with(&source) {
        return Some(format!(
            "it has {} of the host, where the user's services take orders",
            source.display()
        ));
    }
    let is_given = mount.is_writable && (home.starts_with(&source) || is_setting(&source, home));
    is_given.then(|| format!("it may write to {} of the host", source.display()))
}

/// Returns whether a path is in the home directory, and programs of the user read their settings or programs from it.
/// Volumes of the user's Podman are in the home directory too, and are data.
fn is_setting(source: &Path, home: &Path) -> bool {
    let Ok(below) = source.strip_prefix(home) else {
        return false;
    };
    let volumes: PathBuf = [".local", "share", "containers", "storage", "volumes"]
        .iter()
        .collect();
    if below.starts_with(&volumes) && below != volumes {
        return false;
    }
    let first = below.components().next();
    let name = first.and_then(|first| first.as_os_str().to_str());
    name.is_some_and(|name| name.starts_with('.') || PROGRAM_FOLDERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(source: &str, is_writable: bool) -> Option<String> {
        let user = PodmanUser::find("daemon").unwrap();
        let source = source
            .replace("HOME", user.home())
            .replace("UID", &user.uid().to_string());
        let mount = EngineMount {
            kind: "bind".to_owned(),
            source,
            destination: "/x".to_owned(),
            is_writable,
        };
        right_of_mount(&mount, &user)
    }

    #[test]
    fn the_home_directory_and_the_settings_in_it_are_the_users_rights() {
        for source in [
            "HOME",
            "HOME/.ssh",
            "HOME/.bashrc",
            "HOME/.config/systemd",
            "HOME/bin/x",
        ] {
            let right = mounted(source, true).unwrap();
            assert!(right.starts_with("it may write to /"), "{right}");
        }
        for source in [
            "HOME/media",
            "HOME/.local/share/containers/storage/volumes/db/_data",
            "/srv",
            "HOME2",
        ] {
            assert_eq!(mounted(source, true), None, "{source}");
        }
        assert_eq!(mounted("HOME/.ssh", false), None);
    }

    #[test]
    fn the_users_sockets_are_the_users_rights_also_read_only() {
        for source in [
            "/run/user/UID",
            "/run/user/UID/bus",
            "/run/user",
            "/var/run/user/UID",
            "/",
        ] {
            let right = mounted(source, false).unwrap();
            assert!(right.contains("services take orders"), "{right}");
        }
        assert_eq!(mounted("/run/user/99999", false), None);
    }
}
