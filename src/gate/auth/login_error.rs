//! Why a sign-in or setting the first password is refused.

use std::fmt;

use super::password::PasswordError;
use gatewren_store::vault::VaultError;

/// Why a sign-in is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginError {
    /// The password is wrong, or none was set.
    Wrong,
    /// There were too many attempts. Contains the seconds until the next one is allowed.
    Later(u64),
    /// Too many passwords are being checked.
    Busy,
    /// The vault cannot be read. The log has the reason.
    Unavailable,
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Later(seconds) => {
                return write!(
                    f,
                    "too many attempts to sign in; try again in {seconds} seconds"
                );
            }
            Self::Wrong => {
                "this is not the owner's password; root sets it with gatewren owner set-password"
            }
            Self::Busy => "too many sign-ins at once; try again soon",
            Self::Unavailable => "sign-in is not available at the moment; try again soon",
        })
    }
}

impl std::error::Error for LoginError {}

impl From<VaultError> for LoginError {
    fn from(cause: VaultError) -> Self {
        tracing::error!("sign-in failed: {cause}");
        Self::Unavailable
    }
}

/// Why setting the password with a code is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUpError {
    /// The code is wrong, expired or used.
    Code,
    /// The password is not acceptable.
    Password(PasswordError),
    /// The sign-in is refused.
    Login(LoginError),
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code => f.write_str(
                "the code is wrong, used or expired; root makes a new one with gatewren owner setup",
            ),
            Self::Password(cause) => cause.fmt(f),
            Self::Login(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for SetUpError {}

impl From<LoginError> for SetUpError {
    fn from(cause: LoginError) -> Self {
        Self::Login(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_to_wait_is_told_how_long() {
        let words = LoginError::Later(42).to_string();
        assert!(words.contains("42 seconds"), "{words}");
    }
}
