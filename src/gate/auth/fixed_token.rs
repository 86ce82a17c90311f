//! A single token, set on the command line, for fixtures without a vault.

use super::error::AuthError;
use super::principal::Principal;
use gatewren_base::sys::Secret;

/// A token of any form, and its principal.
pub struct FixedToken {
    token: Secret,
    who: Principal,
}

impl FixedToken {
    /// Accepts only this token, for this principal.
    pub fn new(token: Secret, who: Principal) -> Self {
        Self { token, who }
    }

    /// Returns the principal of a `Bearer` token. The comparison takes constant time.
    pub fn identify(&self, bearer: &str) -> Result<Principal, AuthError> {
        if Secret::new(bearer) == self.token {
            Ok(self.who.clone())
        } else {
            Err(AuthError::Unknown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Preset;

    #[test]
    fn only_the_whole_token_opens() {
        let who = Principal::without_token("fixture", Preset::Observe);
        let door = FixedToken::new(Secret::new("correct horse"), who);
        assert_eq!(&**door.identify("correct horse").unwrap().name(), "fixture");
        for other in ["", "correct", "correct horse ", "Correct horse"] {
            assert_eq!(door.identify(other).unwrap_err(), AuthError::Unknown);
        }
    }
}
