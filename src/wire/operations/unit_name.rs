//! The name of a systemd unit, validated before use.

use std::fmt::Write as _;

use uuid::Uuid;

use super::text_type::text_type;

/// The kinds of units: the suffixes of their names.
const KINDS: [&str; 11] = [
    "service",
    "socket",
    "target",
    "device",
    "mount",
    "automount",
    "swap",
    "timer",
    "path",
    "slice",
    "scope",
];

/// systemd's maximum length of a name, in bytes.
const MAX_BYTES: usize = 255;

/// The name's shape as a pattern of JSON Schema (ECMA-262).
const PATTERN: &str = r"^[A-Za-z0-9:_.\\-][A-Za-z0-9:_.\\@-]*\.[a-z]+$";

text_type!(
    /// A unit's name with its suffix, such as `nginx.service`.
    UnitName,
    { "pattern": PATTERN, "maxLength": MAX_BYTES },
    is_valid,
    "a unit's name is at most 255 letters, digits and ':-_.\\@' and ends in its type, such as \"nginx.service\" or \
     \"backup.timer\""
);

impl UnitName {
    /// The kind of unit, such as `service`.
    pub fn kind(&self) -> &str {
        self.0.rsplit('.').next().unwrap_or_default()
    }

    /// For `name@instance.service`, its template `name@.service`.
    pub fn template(&self) -> Option<Self> {
        let (prefix, rest) = self.0.split_once('@')?;
        let instance = rest.strip_suffix(self.kind())?.strip_suffix('.')?;
        (!instance.is_empty()).then(|| Self(format!("{prefix}@.{}", self.kind())))
    }

    /// Returns the name of an instance that does not exist, where the unit has instances.
    #[must_use]
    pub fn of_none(&self) -> Self {
        let prefix = self.0.split_once('@').map_or("", |(prefix, _)| prefix);
        Self(format!(
            "{prefix}@{}.{}",
            Uuid::new_v4().simple(),
            self.kind()
        ))
    }

    /// The instance part, such as `tty1` of `getty@tty1.service`.
    pub fn instance(&self) -> &str {
        let behind = self.0.split_once('@').map_or("", |(_, behind)| behind);
        behind.rsplit_once('.').map_or("", |(instance, _)| instance)
    }

    /// Whether it is a template, which cannot run.
    pub fn is_template(&self) -> bool {
        self.0.contains("@.")
    }

    /// Parses the last part of a unit's object path, where `_xx` encodes a byte.
    pub fn of_path(path: &str) -> Option<Self> {
        let label = path.strip_prefix("/org/freedesktop/systemd1/unit/")?;
        let mut bytes = Vec::with_capacity(label.len());
        let mut rest = label.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            if *first == b'_' {
                let (code, behind) = behind.split_at_checked(2)?;
                let code = std::str::from_utf8(code).ok()?;
                bytes.push(u8::from_str_radix(code, 16).ok()?);
                rest = behind;
            } else {
                bytes.push(*first);
                rest = behind;
            }
        }
        String::from_utf8(bytes).ok()?.parse().ok()
    }

    /// The unit's object path.
    pub fn path(&self) -> String {
        let mut path = String::from("/org/freedesktop/systemd1/unit/");
        for (at, byte) in self.0.bytes().enumerate() {
            if byte.is_ascii_alphabetic() || byte.is_ascii_digit() && at > 0 {
                path.push(char::from(byte));
            } else {
                // Writing to a `String` cannot fail.
                let _ = write!(path, "_{byte:02x}");
            }
        }
        path
    }
}

fn is_valid(name: &str) -> bool {
    let Some((prefix, kind)) = name.rsplit_once('.') else {
        return false;
    };
    let well_made = prefix
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b));
    well_made
        && !prefix.is_empty()
        && !prefix.starts_with('@')
        && name.len() <= MAX_BYTES
        && KINDS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> UnitName {
        name.parse().unwrap()
    }

    #[test]
    fn names_are_checked() {
        for good in [
            "nginx.service",
            "getty@tty1.service",
            "lxc@.service",
            r"dev-disk-by\x2duuid-1.swap",
            "-.mount",
            "user@1000.service",
            "sys-devices-platform-x:y.device",
        ] {
            assert_eq!(name(good).to_string(), good);
        }
        for bad in [
            "",
            "nginx",
            ".service",
            "nginx.exe",
            "a b.service",
            "../x.service",
            "@x.service",
            "*.service",
            &format!("{}.service", "x".repeat(255)),
        ] {
            assert!(bad.parse::<UnitName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_object_path_is_read_as_it_is_written() {
        for (unit, label) in [
            ("nginx.service", "nginx_2eservice"),
            ("getty@tty1.service", "getty_40tty1_2eservice"),
            (r"a\x2db.mount", "a_5cx2db_2emount"),
            ("1.scope", "_31_2escope"),
            ("-.mount", "_2d_2emount"),
        ] {
            let path = format!("/org/freedesktop/systemd1/unit/{label}");
            assert_eq!(name(unit).path(), path);
            assert_eq!(UnitName::of_path(&path), Some(name(unit)));
        }
        for odd in ["", "_", "_2", "_zz", "nginx", "_ff_2eservice"] {
            let path = format!("/org/freedesktop/systemd1/unit/{odd}");
            assert_eq!(UnitName::of_path(&path), None, "{odd}");
        }
        assert_eq!(UnitName::of_path("/elsewhere/nginx_2eservice"), None);
    }

    #[test]
    fn an_instance_knows_its_template() {
        assert_eq!(
            name("getty@tty1.service").template(),
            Some(name("getty@.service"))
        );
        for without in ["nginx.service", "getty@.service"] {
            assert_eq!(name(without).template(), None);
        }
        assert!(name("getty@.service").is_template());
        assert!(!name("getty@tty1.service").is_template());
        assert_eq!(name("a.b.timer").kind(), "timer");
    }
}
