//! Programs that come in over OAuth: their codes and tokens, and whether what the owner agreed to still counts.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use tokio::time::sleep;

use super::token::Token;
use crate::sys::Secret;
use crate::vault::{
    Agent, Exchanged, NewLink, NewTokens, OAUTH_ACCESS_MS, Redemption, Renewal, Vault, VaultError,
};

/// Who waits for a link's end looks again so often at least: time ends it too, and nobody hears of that.
const LOOK: Duration = Duration::from_secs(30);

/// How long a verifier is (RFC 7636, 4.1).
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;

/// A link as it is known again by: its number, as bytes, so that whoever carries it is no larger for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkKey([u8; 8]);

impl LinkKey {
    fn number(self) -> i64 {
        i64::from_ne_bytes(self.0)
    }
}

/// Why nothing is given for a code or a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// It is good for nothing, or not for whom it was brought by.
    Refused,
    /// It is good for another resource.
    OtherResource,
    /// The vault cannot be asked; the log says why.
    Unavailable,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => {
                "the code or the refresh token is unknown, was used, has expired, was revoked or is somebody \
                 else's; ask the owner again at the authorization endpoint"
            }
            Self::OtherResource => "this was given for another resource",
            Self::Unavailable => "nothing can be given at the moment; try again soon",
        })
    }
}

impl std::error::Error for LinkError {}

impl From<VaultError> for LinkError {
    fn from(cause: VaultError) -> Self {
        tracing::error!("a link failed: {cause}");
        Self::Unavailable
    }
}

/// What the owner has agreed to.
#[derive(Debug, Clone, Copy)]
pub struct Agreement<'a> {
    /// Who the program comes in as.
    pub agent: &'a Agent,
    /// The program's id.
    pub client: &'a str,
    /// What its tokens will be good for.
    pub resource: &'a str,
    /// Where its code is sent.
    pub redirect_uri: &'a str,
    /// What must become of the verifier that comes with the code.
    pub challenge: &'a str,
}

/// What a program brings along with its code.
#[derive(Debug, Clone, Copy)]
pub struct Brought<'a> {
    /// Its id.
    pub client: &'a str,
    /// Where it says that the code was sent to, if it does.
    pub redirect_uri: Option<&'a str>,
    /// What the challenge was made of.
    pub verifier: &'a str,
    /// What the tokens are to be good for, if it says so.
    pub resource: Option<&'a str>,
}

/// New tokens, shown once.
#[derive(Debug)]
pub struct Given {
    /// For each request.
    pub access: Secret,
    /// For the next tokens.
    pub refresh: Secret,
    /// How long the access token is good.
    pub expires: Duration,
}

/// The links. The vault is asked each time: one that was ended is over at once.
#[derive(Clone)]
pub struct Links(Vault);

impl Links {
    /// Those of this vault.
    pub fn new(vault: Vault) -> Self {
        Self(vault)
    }

    /// Begins a link; its code.
    pub async fn begin(&self, agreement: Agreement<'_>) -> Result<Secret, VaultError> {
        let (code, hash) = Token::mint()?;
        let link = NewLink {
            agent: agreement.agent.token_sha256,
            client: agreement.client.to_owned(),
            resource: agreement.resource.to_owned(),
            code_sha256: *hash.as_bytes(),
            redirect_uri: agreement.redirect_uri.to_owned(),
            challenge: agreement.challenge.to_owned(),
        };
        self.0.oauth_links().add(link).await?;
        Ok(code)
    }

    /// Exchanges a code for tokens.
    pub async fn redeem(&self, code: &str, brought: Brought<'_>) -> Result<Given, LinkError> {
        let code = Token::hash(code).ok_or(LinkError::Refused)?;
        let redemption = Redemption {
            code_sha256: *code.as_bytes(),
            client: brought.client.to_owned(),
            redirect_uri: brought.redirect_uri.map(ToOwned::to_owned),
            challenge: challenge(brought.verifier).ok_or(LinkError::Refused)?,
            resource: brought.resource.map(ToOwned::to_owned),
        };
        let (given, tokens) = mint()?;
        let exchanged = self.0.oauth_links().redeem(redemption, tokens).await?;
        judged(exchanged, brought.client).map(|()| given)
    }

    /// Exchanges a refresh token for new tokens.
    pub async fn renew(
        &self,
        refresh: &str,
        client: &str,
        resource: Option<&str>,
    ) -> Result<Given, LinkError> {
        let refresh = Token::hash(refresh).ok_or(LinkError::Refused)?;
        let renewal = Renewal {
            refresh: *refresh.as_bytes(),
            client: client.to_owned(),
            resource: resource.map(ToOwned::to_owned),
        };
        let (given, tokens) = mint()?;
        let exchanged = self.0.oauth_links().renew(renewal, tokens).await?;
        judged(exchanged, client).map(|()| given)
    }

    /// Ends the link that a token of this client belongs to; also well where there is none.
    pub async fn end(&self, token: &str, client: &str) -> Result<(), LinkError> {
        if let Some(hash) = Token::hash(token) {
            let links = self.0.oauth_links();
            links.end(*hash.as_bytes(), client.to_owned()).await?;
        }
        Ok(())
    }

    /// The link that has this access token for this resource, and the SHA-256 of its agent's token; none when it is
    /// over, or nobody's.
    pub fn find(
        &self,
        access: &str,
        resource: &str,
    ) -> Result<Option<(LinkKey, [u8; 32])>, LinkError> {
        let Some(hash) = Token::hash(access) else {
            return Ok(None);
        };
        let found = self.0.oauth_links().find(*hash.as_bytes(), resource)?;
        Ok(found.map(|(link, agent)| (LinkKey(link.to_ne_bytes()), agent)))
    }

    /// Whether a link still counts, as far as can be said.
    pub fn is_open(&self, link: LinkKey) -> bool {
        matches!(self.0.oauth_links().is_open(link.number()), Ok(true))
    }

    /// Waits until a link is over. That an access token's time is over ends nothing that was begun with it: what runs
    /// long would end each hour, and whoever holds the link has the next token by then.
    pub async fn ended(&self, link: LinkKey) {
        let mut changes = self.0.agents().changes();
        loop {
            changes.mark_unchanged();
            // A vault that cannot be asked ends nothing.
            if matches!(self.0.oauth_links().is_open(link.number()), Ok(false)) {
                return;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(LOOK) => {}
            }
        }
    }
}

fn mint() -> Result<(Given, NewTokens), LinkError> {
    let (access, access_hash) = Token::mint().map_err(VaultError::from)?;
    let (refresh, refresh_hash) = Token::mint().map_err(VaultError::from)?;
    let given = Given {
        access,
        refresh,
        expires: Duration::from_millis(OAUTH_ACCESS_MS),
    };
    let tokens = NewTokens {
        access: *access_hash.as_bytes(),
        refresh: *refresh_hash.as_bytes(),
    };
    Ok((given, tokens))
}

fn judged(exchanged: Exchanged, client: &str) -> Result<(), LinkError> {
    match exchanged {
        Exchanged::Done => Ok(()),
        Exchanged::Refused => Err(LinkError::Refused),
        Exchanged::OtherResource => Err(LinkError::OtherResource),
        Exchanged::Replayed => {
            let words = "a code or a refresh token was used a second time, so its link is over";
            tracing::warn!(client, "{words}");
            Err(LinkError::Refused)
        }
    }
}

/// What becomes of a verifier (RFC 7636, S256); none of what is no verifier.
fn challenge(verifier: &str) -> Option<String> {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let fits = VERIFIER_CHARS.contains(&verifier.len()) && verifier.bytes().all(unreserved);
    fits.then(|| URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 7636, appendix B.
    #[test]
    fn a_challenge_is_as_others_make_it() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let made = challenge(verifier);
        assert_eq!(
            made.as_deref(),
            Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        );
        for bad in [
            "",
            "short",
            &"x".repeat(42),
            &"x".repeat(129),
            &"ä".repeat(30),
        ] {
            assert_eq!(challenge(bad), None, "{bad}");
        }
    }
}
