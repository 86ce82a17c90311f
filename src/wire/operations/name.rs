//! A container's name, safe as an argument and as a path component.

use uuid::Uuid;

use super::text_type::text_type;

text_type!(
    /// The name of an LXC container.
    ///
    /// One to 64 of `A-Z a-z 0-9 . _ -`, beginning with a letter or a digit. It is never parsed as an option, and it
    /// cannot leave a directory.
    ContainerRef,
    { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    |name| {
        let mut bytes = name.bytes();
        let begins_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        begins_well && goes_on_well && name.len() <= 64
    },
    "a container name is 1 to 64 letters, digits, '.', '_' and '-', and begins with a letter or a digit"
);

impl ContainerRef {
    /// Returns a random name that no container has and that cannot be guessed.
    pub fn of_none() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }
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
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<ContainerRef>().is_err(), "{bad:?}");
        }
        for good in ["alpha", "a", "0", "arr-sonarr_2.1", &"x".repeat(64)] {
            assert_eq!(good.parse::<ContainerRef>().unwrap().as_str(), good);
        }
        let none = ContainerRef::of_none();
        assert_eq!(none.as_str().parse(), Ok(none.clone()));
        assert_ne!(none, ContainerRef::of_none());
    }
}
