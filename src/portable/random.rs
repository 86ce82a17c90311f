//! Random bytes from the kernel, for keys, tokens and ids.

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};

/// The kernel returned no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomError;

impl fmt::Display for RandomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the kernel returned no random bytes: check that this process can use /dev/urandom or \
             getrandom(2)",
        )
    }
}

impl std::error::Error for RandomError {}

/// Returns `N` unpredictable bytes.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RandomError)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        let first: [u8; 32] = random_bytes().unwrap();
        assert_ne!(first, [0; 32]);
        assert_ne!(first, random_bytes().unwrap());
    }
}
