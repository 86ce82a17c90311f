//! The lists in `helper.toml`.

use super::container_store::ContainerStore;
use super::glob::Glob;
use super::runtime_kind::RuntimeKind;
use super::shape::List;
use super::template::ContainerTemplate;

/// Names of containers.
pub const GLOBS: List<Glob> = List {
    entry: |text| text.parse().ok(),
    like: "a container's name or a pattern, such as \"web\", \"arr-*\" or \"docker:arr-*\"",
    may_be_empty: true,
};

/// Container runtimes.
pub const RUNTIMES: List<RuntimeKind> = List {
    entry: |text| text.parse().ok(),
    like: "one of \"lxc\", \"docker\", \"podman\" and \"docker-in-lxc\"",
    may_be_empty: true,
};

/// Templates for new containers.
pub const TEMPLATES: List<ContainerTemplate> = List {
    entry: |text| text.parse().ok(),
    like: "an LXC template, such as \"busybox\" or \"debian: download -d debian -r trixie -a amd64\"",
    may_be_empty: true,
};

/// Places for containers.
pub const STORES: List<ContainerStore> = List {
    entry: |text| text.parse().ok(),
    like: "a name and the absolute path of a directory, such as \"big: /srv/containers\"",
    may_be_empty: true,
};

/// The maximum length of a directory's path.
const DIRECTORY_BYTES: usize = 1024;

/// Directories of the host.
pub const DIRECTORIES: List<String> = List {
    entry: directory,
    like: "an absolute path of a directory, without \"..\", such as \"/srv\"",
    may_be_empty: true,
};

/// Users, or files of SSH keys.
pub const ACCOUNTS: List<String> = List {
    entry: account,
    like: "a user's name, such as \"root\", or the absolute path of a file",
    may_be_empty: true,
};

/// Users whose own Podman is served.
pub const USERS: List<String> = List {
    entry: user,
    like: "a user's name other than root, such as \"alice\"",
    may_be_empty: true,
};

/// Parses a login name that can be the place in a reference to a container.
fn user(text: &str) -> Option<String> {
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let all = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    let is_name = begins_well && text.len() <= 32 && text.bytes().all(all);
    (is_name && text != "root").then(|| text.to_owned())
}

/// Parses a login name as useradd(8) accepts it, or an absolute path.
fn account(text: &str) -> Option<String> {
    if text.starts_with('/') {
        return directory(text).filter(|path| path != "/");
    }
    let begins_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let all = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    (begins_well && text.len() <= 32 && text.bytes().all(all)).then(|| text.to_owned())
}

fn directory(text: &str) -> Option<String> {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    let good = text.starts_with('/') && text.len() <= DIRECTORY_BYTES && text.chars().all(plain);
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let straight = parts.iter().all(|part| *part != "." && *part != "..");
    (good && straight).then(|| format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_so_that_a_reference_can_name_it() {
        assert_eq!(user("alice").as_deref(), Some("alice"));
        assert_eq!(user("svc-media_1.x").as_deref(), Some("svc-media_1.x"));
        for bad in [
            "",
            "root",
            "1000",
            "_apt",
            "-x",
            "a@b",
            "a/b",
            &"x".repeat(33),
        ] {
            assert_eq!(user(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_directory_is_named_straight() {
        assert_eq!(directory("/srv//data/").as_deref(), Some("/srv/data"));
        assert_eq!(directory("/").as_deref(), Some("/"));
        for bad in ["", "srv", "/srv/../etc", "/a/./b", "/a\"b", "/a\nb"] {
            assert_eq!(directory(bad), None, "{bad:?}");
        }
    }
}
