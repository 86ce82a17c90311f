//! Whoever sits at the box and may open the vault is the owner; under `sudo` they have a name of their own.

use crate::deeds::Hand;
use crate::sys::own_uid;

/// The hand of whoever types.
pub fn hand() -> Hand {
    Hand {
        by: owner(),
        from: "local".to_owned(),
    }
}

/// What they are called.
pub fn owner() -> String {
    let name = |name: &str| std::env::var(name).ok().filter(|name| !name.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER"));
    let user = user.unwrap_or_else(|| format!("uid {}", own_uid()));
    format!("local:{user}")
}
