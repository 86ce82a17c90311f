//! The reference to a stack: the runtime and the name of a Compose project.

use gatewren_base::config::RuntimeKind;

use super::container_ref::{NAME_BYTES, is_name};
use super::text_type::{InvalidText, text_type};

text_type!(
    /// The reference to a stack, which is a Compose project of one runtime: `docker:media`, or `media` where only one
    /// runtime has a project of that name.
    ///
    /// The name has the rule of a container's name. Compose itself allows less.
    StackRef,
    { "pattern": "^((docker|podman):)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" },
    |text| match text.split_once(':') {
        Some((runtime, project)) => engine(runtime).is_some() && is_name(project, NAME_BYTES),
        None => is_name(text, NAME_BYTES),
    },
    "a stack is named by 1 to 128 letters, digits, '.', '_' and '-', beginning with a letter or a digit; docker: or \
     podman: before the name says whose it is"
);

impl StackRef {
    /// Returns the reference to the project of a runtime with this name.
    ///
    /// # Errors
    /// If the name breaks the rule of the type.
    pub fn of(runtime: RuntimeKind, project: &str) -> Result<Self, InvalidText> {
        Self::try_from(format!("{runtime}:{project}"))
    }

    /// Returns the stack's runtime; `None` if the reference names none.
    pub fn runtime(&self) -> Option<RuntimeKind> {
        engine(self.0.split_once(':')?.0)
    }

    /// Returns the project's name.
    pub fn project(&self) -> &str {
        self.0
            .split_once(':')
            .map_or(&self.0, |(_, project)| project)
    }
}

/// Returns the runtime of this word, if it can have Compose projects.
fn engine(word: &str) -> Option<RuntimeKind> {
    let runtime = word.parse().ok();
    runtime.filter(|runtime| matches!(runtime, RuntimeKind::Docker | RuntimeKind::Podman))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_the_name_of_a_project_and_perhaps_a_runtime() {
        let media: StackRef = "docker:media".parse().unwrap();
        assert_eq!(media.runtime(), Some(RuntimeKind::Docker));
        assert_eq!(media.project(), "media");
        assert_eq!(StackRef::of(RuntimeKind::Docker, "media"), Ok(media));
        let bare: StackRef = "home_1.x-y".parse().unwrap();
        assert_eq!((bare.runtime(), bare.project()), (None, "home_1.x-y"));
        let long = "x".repeat(129);
        for bad in [
            "",
            "lxc:a",
            "docker:",
            ":a",
            "-a",
            "a/b",
            "docker:a:b",
            &long,
        ] {
            assert!(bad.parse::<StackRef>().is_err(), "{bad:?}");
        }
    }
}
