//! The reference to a container: its runtime, its name and its place, safe as an argument and as a path component.

use std::borrow::Cow;

use uuid::Uuid;

use gatewren_base::config::RuntimeKind;

use super::text_type::{InvalidText, text_type};

/// The longest name of a container of LXC, and of the other runtimes, in bytes.
const LXC_NAME_BYTES: usize = 64;
pub(super) const NAME_BYTES: usize = 128;

/// The longest place, in bytes: a container of LXC or a user.
const PLACE_BYTES: usize = 64;

text_type!(
    /// The reference to a container: `media` for one of LXC, `docker:jellyfin` or `podman:web` for one of another
    /// runtime. `lxc:media` is read as `media`, so that each container has one reference.
    ///
    /// A place after the name says where a daemon runs that is not root's on the host: `docker:jellyfin@media` is a
    /// container of the Docker inside the container `media` of LXC, `podman:web@alice` one of the user `alice`.
    ///
    /// The name is one to 64 (LXC) or 128 of `A-Z a-z 0-9 . _ -` and begins with a letter or a digit, the place one to
    /// 64. Neither is ever parsed as an option, and neither can leave a directory.
    ContainerRef,
    { "pattern": "^((lxc:)?[A-Za-z0-9][A-Za-z0-9._-]{0,63}|\
                  (docker|podman):[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?)$" },
    |text| match ReferenceParts::of(text) {
        ReferenceParts { runtime: Some(RuntimeKind::Lxc), name, place: None } => is_name(name, LXC_NAME_BYTES),
        ReferenceParts { runtime: None | Some(RuntimeKind::Lxc), .. } => false,
        ReferenceParts { name, place, .. } => {
            is_name(name, NAME_BYTES) && place.is_none_or(|place| is_name(place, PLACE_BYTES))
        }
    },
    "a container is named by 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or a digit; \
     docker: or podman: before the name says that it is not one of LXC",
    without_lxc
);

impl ContainerRef {
    /// Returns the reference to the container of a runtime with this name.
    ///
    /// # Errors
    /// If the name breaks the rule of the type.
    pub fn of(runtime: RuntimeKind, name: &str) -> Result<Self, InvalidText> {
        Self::try_from(format!("{runtime}:{name}"))
    }

    /// Returns the reference to the container of a user's Podman with this name.
    ///
    /// # Errors
    /// If a name breaks the rule of the type.
    pub fn of_user(user: &str, name: &str) -> Result<Self, InvalidText> {
        Self::try_from(format!("{}:{name}@{user}", RuntimeKind::Podman))
    }

    /// Returns the reference to the container of the Docker inside a container of LXC with this name.
    ///
    /// # Errors
    /// If a name breaks the rule of the type.
    pub fn inside(place: &str, name: &str) -> Result<Self, InvalidText> {
        Self::try_from(format!(
            "{}:{name}@{place}",
            RuntimeKind::DockerInLxc.prefix()
        ))
    }

    /// Returns the container of LXC in which this one's Docker runs; `None` for a container of another runtime.
    pub fn outer(&self) -> Option<Self> {
        let place = self
            .place()
            .filter(|_| self.runtime() == RuntimeKind::DockerInLxc);
        place.and_then(|place| Self::try_from(place.to_owned()).ok())
    }

    /// Returns a random reference of the same runtime that no container has and that cannot be guessed, for Docker inside
    /// LXC in a random place. A query for it takes the same way as one for a container that is missing.
    #[must_use]
    pub fn of_none(&self) -> Self {
        let parts = ReferenceParts::of(&self.0);
        let name = Uuid::new_v4().simple();
        match (self.runtime(), parts.place) {
            (RuntimeKind::Lxc, _) => Self(name.to_string()),
            (runtime, None) => Self(format!("{}:{name}", runtime.prefix())),
            // The answer would show whether the place exists.
            (RuntimeKind::DockerInLxc, Some(_)) => {
                let place = Uuid::new_v4().simple();
                Self(format!("docker:{name}@{place}"))
            }
            (runtime, Some(place)) => Self(format!("{}:{name}@{place}", runtime.prefix())),
        }
    }

    /// Returns the container's runtime.
    pub fn runtime(&self) -> RuntimeKind {
        let runtime = ReferenceParts::of(&self.0).runtime;
        runtime.unwrap_or(RuntimeKind::Lxc)
    }

    /// Returns the container's name within its runtime.
    pub fn name(&self) -> &str {
        ReferenceParts::of(&self.0).name
    }

    /// Returns where the runtime's daemon runs, if it is not root's on the host: a container of LXC for Docker, a user
    /// for Podman.
    pub fn place(&self) -> Option<&str> {
        ReferenceParts::of(&self.0).place
    }

    /// Returns the reference with its runtime, such as `lxc:media`, where the name alone is not unique.
    pub fn with_runtime(&self) -> Cow<'_, str> {
        match self.runtime() {
            RuntimeKind::Lxc => format!("lxc:{}", self.0).into(),
            RuntimeKind::Docker | RuntimeKind::Podman | RuntimeKind::DockerInLxc => {
                Cow::Borrowed(&self.0)
            }
        }
    }
}

/// The parts of a reference.
struct ReferenceParts<'a> {
    /// `None` if the word before the name is that of no runtime.
    runtime: Option<RuntimeKind>,
    name: &'a str,
    place: Option<&'a str>,
}

impl<'a> ReferenceParts<'a> {
    fn of(text: &'a str) -> Self {
        let (prefix, rest) = text
            .split_once(':')
            .unwrap_or((RuntimeKind::Lxc.prefix(), text));
        let (name, place) = match rest.split_once('@') {
            Some((name, place)) => (name, Some(place)),
            None => (rest, None),
        };
        let runtime = RuntimeKind::of_prefix(prefix, place.is_some());
        Self {
            runtime,
            name,
            place,
        }
    }
}

fn without_lxc(text: String) -> String {
    match text.strip_prefix("lxc:") {
        Some(name) => name.to_owned(),
        None => text,
    }
}

pub(super) fn is_name(name: &str, max_bytes: usize) -> bool {
    let mut bytes = name.bytes();
    let begins_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    begins_well && goes_on_well && name.len() <= max_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_an_option_or_a_path_are_refused() {
        for bad in [
            "",
            "-P",
            ".",
            "..",
            "a/b",
            "../x",
            "a b",
            "a\0b",
            "ä",
            ":a",
            "docker:",
            "docker:-x",
            "docker:../x",
            "docker:a:b",
            "docker:a@",
            "docker:@b",
            "docker:a@b@c",
            "docker-in-lxc:a",
            "docker-in-lxc:a@b",
            "docker:a@b/c",
            "docker:a@-b",
            "lxc:a@b",
            "a@b",
            "lxc:docker:a",
            "Docker:a",
            "nspawn:a",
            &"x".repeat(65),
            &format!("lxc:{}", "x".repeat(65)),
            &format!("docker:{}", "x".repeat(129)),
            &format!("docker:a@{}", "x".repeat(65)),
        ] {
            assert!(bad.parse::<ContainerRef>().is_err(), "{bad:?}");
        }
        let long = format!("docker:{}", "x".repeat(128));
        for good in [
            "alpha",
            "a",
            "0",
            "arr-sonarr_2.1",
            "podman:web",
            "docker:a@b",
            &long,
        ] {
            assert_eq!(good.parse::<ContainerRef>().unwrap().as_str(), good);
        }
        for hidden in ["alpha", "docker:web", "podman:web@alice"] {
            let hidden: ContainerRef = hidden.parse().unwrap();
            let none = hidden.of_none();
            assert_eq!(none.as_str().parse(), Ok(none.clone()));
            assert_eq!(none.runtime(), hidden.runtime());
            assert_eq!(none.place().is_some(), hidden.place().is_some());
            assert_ne!(none, hidden.of_none());
        }
    }

    #[test]
    fn a_container_of_lxc_has_one_reference() {
        let media: ContainerRef = "lxc:media".parse().unwrap();
        assert_eq!(media, "media".parse().unwrap());
        assert_eq!((media.as_str(), media.name()), ("media", "media"));
        assert_eq!(media.with_runtime(), "lxc:media");
        assert_eq!(media.runtime(), RuntimeKind::Lxc);
        let read: ContainerRef = serde_json::from_str("\"lxc:media\"").unwrap();
        assert_eq!(read, media);
        let docker = ContainerRef::of(RuntimeKind::Docker, "media").unwrap();
        assert_eq!((docker.as_str(), docker.name()), ("docker:media", "media"));
        assert_eq!(docker.runtime(), RuntimeKind::Docker);
        assert_ne!(docker, media);
        assert_eq!((media.place(), docker.place()), (None, None));
        let inner: ContainerRef = "docker:jellyfin@media".parse().unwrap();
        assert_eq!((inner.name(), inner.place()), ("jellyfin", Some("media")));
        let of_user = ContainerRef::of_user("alice", "web").unwrap();
        assert_eq!(of_user.as_str(), "podman:web@alice");
        assert_eq!(of_user.runtime(), RuntimeKind::Podman);
        assert_eq!(inner.runtime(), RuntimeKind::DockerInLxc);
        assert_eq!(inner, ContainerRef::inside("media", "jellyfin").unwrap());
        assert_eq!((inner.outer(), docker.outer()), (Some(media), None));
        assert_ne!(inner.of_none().place(), inner.place());
        assert_eq!(inner.with_runtime(), inner.as_str());
    }
}
