//! The name of an image, checked before it becomes part of a request's path.

use super::container_id::ImageId;

/// The most bytes of an image's name; a longer one cannot be looked up.
const MAX_NAME_BYTES: usize = 512;
/// The fewest digits that the engines take for the beginning of an image's id.
const MIN_ID_DIGITS: usize = 4;

/// An image's name, perhaps with a registry, a tag or a digest, such as `docker.io/library/nginx:1.27`. It is safe in
/// a path, and an engine cannot take it for an id.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageName<'t>(&'t str);

impl<'t> ImageName<'t> {
    /// Parses a name. `None` for an id or the beginning of one, which name an image for ever, and for anything that
    /// is not a name.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let may_be_id = text.len() >= MIN_ID_DIGITS
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let is_name = text.len() <= MAX_NAME_BYTES && text.split('/').all(is_part);
        let is_name = is_name && !may_be_id && ImageId::parse(text).is_none();
        is_name.then_some(Self(text))
    }

    /// The name as text.
    pub(super) fn as_str(self) -> &'t str {
        self.0
    }
}

/// Whether a text may stand between the slashes of a name (distribution's reference grammar, a little wider). It is
/// never `.` or `..`, and has no character that a URL gives a meaning to within a path.
fn is_part(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    begins_well && bytes.all(|b| b.is_ascii_alphanumeric() || b"._-:@".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_a_path() {
        let digest = format!("nginx@sha256:{}", "ab".repeat(32));
        for good in [
            "lab:1",
            "nginx",
            "localhost:5000/a/b:x",
            "docker.io/library/nginx:1.27",
            &digest,
        ] {
            assert_eq!(ImageName::parse(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(513);
        for bad in [
            "", "/", "a//b", "../x", "a/..", "a/./b", ".a", "a?b", "a#b", "a%2e", "a b", "a\n",
            "ä", "a/", &long,
        ] {
            assert!(ImageName::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn an_id_is_no_name() {
        let id = "ab".repeat(32);
        for id in [&id, &format!("sha256:{id}"), "abcd", "0123456789ab"] {
            assert!(ImageName::parse(id).is_none(), "{id}");
        }
    }
}
