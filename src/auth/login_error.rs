//! Why a sign-in or the first password is refused.

use std::fmt;

use super::password::PasswordError;
use crate::vault::VaultError;

/// Why nobody is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginError {
    /// It is not the password, or none was set.
    Wrong,
    /// There were too many attempts; in so many seconds there may be one.
    Later(u64),
    /// Too many are being looked at.
    Busy,
    /// The vault cannot be asked; the log says why.
    Unavailable,
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrong => {
                "this is not the owner's password; root sets it with gatewren owner set-password"
            }
            Self::Later(_) => "there were too many attempts to sign in; wait, then try again",
            Self::Busy => "too many sign in at once; try again soon",
            Self::Unavailable => "nobody can sign in at the moment; try again soon",
        })
    }
}

impl std::error::Error for LoginError {}

impl From<VaultError> for LoginError {
    fn from(cause: VaultError) -> Self {
        tracing::error!("signing in failed: {cause}");
        Self::Unavailable
    }
}

/// Why no password was set with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUpError {
    /// It is not the code, its time is over, or it was used.
    Code,
    /// This cannot be the password.
    Password(PasswordError),
    /// The login was refused.
    Login(LoginError),
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code => f.write_str(
                "this is not the code, or it was used or is over; root makes a new one with gatewren owner setup",
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
