//! OAuth links: the access that the owner has given to a program, with its code and its tokens.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::vault::error::VaultError;
use crate::vault::job::Durability;
use crate::vault::row::to_column;
use crate::vault::shared::SharedVault;
use gatewren_base::sys::now_ms;

/// The lifetime of a code.
const CODE_MS: u64 = 60_000;

/// The lifetime of an access token.
pub const ACCESS_MS: u64 = 3_600_000;

/// The lifetime of a link that is not renewed.
const LINK_MS: u64 = 30 * 24 * 3_600_000;

/// The limit of one agent's links, each confirmed by the owner. Beyond it the one that expires first is deleted.
const MOST_EACH: i64 = 16;

/// The limit of valid access tokens of one link. Beyond it a new token revokes the oldest.
const MOST_ACCESS: i64 = 8;

/// The limit of one link's refresh tokens, used ones included. Reuse of a deleted one is rejected but not detected.
const MOST_REFRESH: i64 = 64;

/// The part of the schema's fifth version.
pub(in crate::vault) const SCHEMA: &str = "
CREATE TABLE oauth_link (
    -- Never reused.
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The SHA-256 of the agent's token: a new token ends the link.
    agent        BLOB NOT NULL CHECK (length(agent) = 32),
    client       TEXT NOT NULL,
    resource     TEXT NOT NULL,
    code_sha256  BLOB NOT NULL UNIQUE CHECK (length(code_sha256) = 32),
    redirect_uri TEXT NOT NULL,
    challenge    TEXT NOT NULL,
    redeemed     INTEGER NOT NULL DEFAULT 0 CHECK (redeemed IN (0, 1)),
    until_ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_link_agent ON oauth_link (agent);
CREATE TABLE oauth_token (
    sha256   BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32),
    link     INTEGER NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
    used     INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1)),
    until_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_token_link ON oauth_token (link);
";

/// The SHA-256 of a code or of a token.
type Hash = [u8; 32];

/// A link that the owner has just confirmed.
#[derive(Debug, Clone)]
pub struct NewLink {
    /// The SHA-256 of the agent's token.
    pub agent: Hash,
    /// The program's id.
    pub client: String,
    /// The resource that its tokens are valid for.
    pub resource: String,
    /// The SHA-256 of its code.
    pub code_sha256: Hash,
    /// The redirect URI to which the code is sent.
    pub redirect_uri: String,
    /// The code challenge (PKCE, S256).
    pub challenge: String,
}

/// The SHA-256 of two new tokens.
#[derive(Debug, Clone)]
pub struct NewTokens {
    /// The access token.
    pub access: Hash,
    /// The refresh token.
    pub refresh: Hash,
}

/// A code to exchange for tokens.
#[derive(Debug, Clone)]
pub struct CodeRedemption {
    /// The SHA-256 of the code.
    pub code_sha256: Hash,
    /// The program that presents it.
    pub client: String,
    /// The redirect URI in the request. A client of OAuth 2.1 omits it, because the verifier is the stronger proof.
    pub redirect_uri: Option<String>,
    /// The challenge computed from the verifier.
    pub challenge: String,
    /// The requested resource, if there is one in the request.
    pub resource: Option<String>,
}

/// A refresh token to exchange for new tokens.
#[derive(Debug, Clone)]
pub struct TokenRenewal {
    /// The SHA-256 of the refresh token.
    pub refresh: Hash,
    /// The program that presents it.
    pub client: String,
    /// The requested resource, if there is one in the request.
    pub resource: Option<String>,
}

/// The result of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// The new tokens are valid.
    Done,
    /// The code or token is invalid, or belongs to another program.
    Refused,
    /// The code or token is valid, but not for this resource.
    OtherResource,
    /// The code or token was used before, so someone else has it too. The link was ended.
    Replayed,
}

/// Access to the tables.
pub struct OauthLinkTable<'a>(&'a Arc<SharedVault>);

impl<'a> OauthLinkTable<'a> {
    pub(in crate::vault) fn new(shared: &'a Arc<SharedVault>) -> Self {
        Self(shared)
    }

    /// Adds a link. Its code is valid once this returns.
    pub async fn add(&self, new: NewLink) -> Result<(), VaultError> {
        let work = move |connection: &Connection| insert(connection, &new);
        let writer = &self.0.writer;
        let written = writer.write("create a link", Durability::Power, work, |()| ());
        written.await
    }

    /// Exchanges a code for these tokens.
    pub async fn redeem(
        &self,
        redemption: CodeRedemption,
        tokens: NewTokens,
    ) -> Result<ExchangeOutcome, VaultError> {
        let work = move |connection: &Connection| redeem(connection, &redemption, &tokens);
        self.exchange("exchange a code", work).await
    }

    /// Exchanges a refresh token for these tokens.
    pub async fn renew(
        &self,
        renewal: TokenRenewal,
        tokens: NewTokens,
    ) -> Result<ExchangeOutcome, VaultError> {
        let work = move |connection: &Connection| renew(connection, &renewal, &tokens);
        self.exchange("renew a link", work).await
    }

    /// Ends the link that this token of this client belongs to. Returns false if there is none.
    pub async fn end(&self, token: Hash, client: String) -> Result<bool, VaultError> {
        let work = move |connection: &Connection| {
            let query = "SELECT l.id FROM oauth_token t JOIN oauth_link l ON l.id = t.link
                         WHERE t.sha256 = ?1 AND l.client = ?2";
            let link: Option<i64> = connection
                .query_row(query, params![token, client], |row| row.get(0))
                .optional()?;
            if let Some(link) = link {
                remove(connection, link)?;
            }
            Ok(link.is_some())
        };
        let agent_changes = self.0.agent_changes.clone();
        let then = move |ended: &bool| {
            if *ended {
                agent_changes.send_modify(|changes| *changes += 1);
            }
        };
        let writer = &self.0.writer;
        writer
            .write("end a link", Durability::Power, work, then)
            .await
    }

    /// Returns the id of the link of this access token for this resource, and its agent's token as SHA-256.
    pub fn find(&self, access: Hash, resource: &str) -> Result<Option<(i64, Hash)>, VaultError> {
        let query = "SELECT l.id, l.agent FROM oauth_token t JOIN oauth_link l ON l.id = t.link
                     WHERE t.sha256 = ?1 AND t.kind = 'access' AND t.until_ms > ?2 AND l.resource = ?3";
        self.0.read("find an access token", |connection| {
            let parameters = params![access, to_column(now_ms()), resource];
            let mut select = connection.prepare_cached(query)?;
            select
                .query_row(parameters, |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
    }

    /// Returns whether a link exists and has not expired.
    pub fn is_open(&self, link: i64) -> Result<bool, VaultError> {
        let query = "SELECT 1 FROM oauth_link WHERE id = ?1 AND until_ms > ?2";
        self.0.read("read a link", |connection| {
            let mut select = connection.prepare_cached(query)?;
            select.exists([link, to_column(now_ms())])
        })
    }

    async fn exchange(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<ExchangeOutcome, rusqlite::Error> + Send + 'static,
    ) -> Result<ExchangeOutcome, VaultError> {
        let agent_changes = self.0.agent_changes.clone();
        let then = move |exchanged: &ExchangeOutcome| {
            if *exchanged == ExchangeOutcome::Replayed {
                agent_changes.send_modify(|changes| *changes += 1);
            }
        };
        let writer = &self.0.writer;
        writer.write(doing, Durability::Power, work, then).await
    }
}

/// Adds a link. Deletes expired links and those of revoked agents.
fn insert(connection: &Connection, new: &NewLink) -> Result<(), rusqlite::Error> {
    let now = now_ms();
    connection.execute(
        "DELETE FROM oauth_link WHERE until_ms <= ?1 OR agent NOT IN
         (SELECT token_sha256 FROM agent WHERE revoked_ms IS NULL)",
        [to_column(now)],
    )?;
    connection.execute(
        "DELETE FROM oauth_link WHERE id IN (SELECT id FROM oauth_link WHERE agent = ?1
         ORDER BY until_ms DESC, id DESC LIMIT -1 OFFSET ?2)",
        params![new.agent, MOST_EACH - 1],
    )?;
    let orphans = "DELETE FROM oauth_token WHERE link NOT IN (SELECT id FROM oauth_link)";
    connection.execute(orphans, [])?;
    connection
        .execute(
            "INSERT INTO oauth_link
             (agent, client, resource, code_sha256, redirect_uri, challenge, until_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                new.agent,
                new.client,
                new.resource,
                new.code_sha256,
                new.redirect_uri,
                new.challenge,
                to_column(now.saturating_add(CODE_MS)),
            ],
        )
        .map(drop)
}

/// The columns of a link that an exchange needs.
struct FoundLink {
    id: i64,
    client: String,
    resource: String,
    /// Whether the presented code or token was used before.
    spent: bool,
    /// Whether it has expired, or its agent was revoked or has expired.
    over: bool,
}

impl FoundLink {
    /// Returns the reason to refuse the exchange, if there is one.
    fn refuses(&self, client: &str, resource: Option<&str>) -> Option<ExchangeOutcome> {
        if self.over || self.client != client {
            return Some(ExchangeOutcome::Refused);
        }
        let other = resource.is_some_and(|resource| resource != self.resource);
        other.then_some(ExchangeOutcome::OtherResource)
    }
}

/// The columns of the link `l`, and whether its agent has no valid token.
const LINK: &str = "l.id, l.client, l.resource, NOT EXISTS (SELECT 1 FROM agent a
    WHERE a.token_sha256 = l.agent AND a.revoked_ms IS NULL
      AND coalesce(a.expires_ms, ?2 + 1) > ?2)";

fn redeem(
    connection: &Connection,
    brought: &CodeRedemption,
    tokens: &NewTokens,
) -> Result<ExchangeOutcome, rusqlite::Error> {
    let now = now_ms();
    let query = format!(
        "SELECT {LINK}, l.redeemed, l.until_ms <= ?2, l.redirect_uri, l.challenge
         FROM oauth_link l WHERE l.code_sha256 = ?1"
    );
    let found = connection.query_row(
        &query,
        params![brought.code_sha256, to_column(now)],
        |row| {
            let found = FoundLink {
                id: row.get(0)?,
                client: row.get(1)?,
                resource: row.get(2)?,
                spent: row.get(4)?,
                over: row.get::<_, bool>(3)? || row.get::<_, bool>(5)?,
            };
            Ok((found, row.get::<_, String>(6)?, row.get::<_, String>(7)?))
        },
    );
    let Some((found, redirect_uri, challenge)) = found.optional()? else {
        return Ok(ExchangeOutcome::Refused);
    };
    if found.spent {
        remove(connection, found.id)?;
        return Ok(ExchangeOutcome::Replayed);
    }
    let elsewhere = brought
        .redirect_uri
        .as_ref()
        .is_some_and(|uri| *uri != redirect_uri);
    if elsewhere || brought.challenge != challenge {
        return Ok(ExchangeOutcome::Refused);
    }
    if let Some(refusal) = found.refuses(&brought.client, brought.resource.as_deref()) {
        return Ok(refusal);
    }
    connection.execute(
        "UPDATE oauth_link SET redeemed = 1 WHERE id = ?1",
        [found.id],
    )?;
    give(connection, found.id, tokens, now)
}

fn renew(
    connection: &Connection,
    brought: &TokenRenewal,
    tokens: &NewTokens,
) -> Result<ExchangeOutcome, rusqlite::Error> {
    let now = now_ms();
    let query = format!(
        "SELECT {LINK}, t.used, t.until_ms <= ?2 FROM oauth_token t JOIN oauth_link l ON l.id = t.link
         WHERE t.sha256 = ?1 AND t.kind = 'refresh'"
    );
    let found = connection.query_row(&query, params![brought.refresh, to_column(now)], |row| {
        Ok(FoundLink {
            id: row.get(0)?,
            client: row.get(1)?,
            resource: row.get(2)?,
            spent: row.get(4)?,
            over: row.get::<_, bool>(3)? || row.get::<_, bool>(5)?,
        })
    });
    let Some(found) = found.optional()? else {
        return Ok(ExchangeOutcome::Refused);
    };
    if found.spent {
        remove(connection, found.id)?;
        return Ok(ExchangeOutcome::Replayed);
    }
    if let Some(refusal) = found.refuses(&brought.client, brought.resource.as_deref()) {
        return Ok(refusal);
    }
    let used = "UPDATE oauth_token SET used = 1 WHERE sha256 = ?1";
    connection.execute(used, [brought.refresh])?;
    give(connection, found.id, tokens, now)
}

/// Gives a link new tokens and a new expiry. Deletes tokens beyond the limits.
fn give(
    connection: &Connection,
    link: i64,
    tokens: &NewTokens,
    now: u64,
) -> Result<ExchangeOutcome, rusqlite::Error> {
    let (access, rest) = (now.saturating_add(ACCESS_MS), now.saturating_add(LINK_MS));
    let insert = "INSERT INTO oauth_token (sha256, link, kind, until_ms) VALUES (?1, ?2, ?3, ?4)";
    for (hash, kind, until) in [
        (tokens.access, "access", access),
        (tokens.refresh, "refresh", rest),
    ] {
        connection.execute(insert, params![hash, link, kind, to_column(until)])?;
    }
    let longer = "UPDATE oauth_link SET until_ms = ?2 WHERE id = ?1";
    connection.execute(longer, [link, to_column(rest)])?;
    for (kind, most) in [("access", MOST_ACCESS), ("refresh", MOST_REFRESH)] {
        connection.execute(
            "DELETE FROM oauth_token WHERE rowid IN (SELECT rowid FROM oauth_token
             WHERE link = ?1 AND kind = ?2 ORDER BY rowid DESC LIMIT -1 OFFSET ?3)",
            params![link, kind, most],
        )?;
    }
    Ok(ExchangeOutcome::Done)
}

fn remove(connection: &Connection, link: i64) -> Result<(), rusqlite::Error> {
    connection.execute("DELETE FROM oauth_token WHERE link = ?1", [link])?;
    connection
        .execute("DELETE FROM oauth_link WHERE id = ?1", [link])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::oauth_links::*;
    use super::super::table::{Agent, NewAgent};
    use crate::vault::store::Vault;
    use gatewren_base::config::Preset;
    use gatewren_base::sys::Scratch;

    const RESOURCE: &str = "https://box.lan/connect/mcp";

    struct LinksFixture {
        scratch: Scratch,
        vault: Vault,
        agent: Agent,
    }

    async fn fixture() -> LinksFixture {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let agent = NewAgent {
            name: "chat".to_owned(),
            token_sha256: [1; 32],
            preset: Preset::Observe,
            overrides: "{}".to_owned(),
            space: Some("*".to_owned()),
            expires_ms: None,
        };
        let agent = vault.agents().add(agent).await.unwrap();
        LinksFixture {
            scratch,
            vault,
            agent,
        }
    }

    fn tokens(access: u8, refresh: u8) -> NewTokens {
        NewTokens {
            access: [access; 32],
            refresh: [refresh; 32],
        }
    }

    fn code(code: u8) -> CodeRedemption {
        CodeRedemption {
            code_sha256: [code; 32],
            client: "client_1".to_owned(),
            redirect_uri: Some("http://127.0.0.1:1/b".to_owned()),
            challenge: "right".to_owned(),
            resource: Some(RESOURCE.to_owned()),
        }
    }

    fn renewal(refresh: u8) -> TokenRenewal {
        TokenRenewal {
            refresh: [refresh; 32],
            client: "client_1".to_owned(),
            resource: None,
        }
    }

    impl LinksFixture {
        async fn begin(&self, code: u8) {
            let link = NewLink {
                agent: self.agent.token_sha256,
                client: "client_1".to_owned(),
                resource: RESOURCE.to_owned(),
                code_sha256: [code; 32],
                redirect_uri: "http://127.0.0.1:1/b".to_owned(),
                challenge: "right".to_owned(),
            };
            self.vault.oauth_links().add(link).await.unwrap();
        }

        async fn redeem(&self, code: CodeRedemption, tokens: NewTokens) -> ExchangeOutcome {
            let links = self.vault.oauth_links();
            links.redeem(code, tokens).await.unwrap()
        }

        async fn renew(&self, renewal: TokenRenewal, tokens: NewTokens) -> ExchangeOutcome {
            let links = self.vault.oauth_links();
            links.renew(renewal, tokens).await.unwrap()
        }

        fn has(&self, access: u8) -> bool {
            let found = self.vault.oauth_links().find([access; 32], RESOURCE);
            found.unwrap().is_some()
        }

        /// Writes through another connection, like another process.
        fn sql(&self, sql: &str) -> usize {
            let other = Connection::open(self.scratch.join("vault.db")).unwrap();
            other.execute(sql, []).unwrap()
        }

        fn count(&self, from: &str) -> i64 {
            let other = Connection::open(self.scratch.join("vault.db")).unwrap();
            let count = format!("SELECT count(*) FROM {from}");
            other.query_row(&count, [], |row| row.get(0)).unwrap()
        }
    }

    #[tokio::test]
    async fn a_code_is_good_once_and_for_whom_it_was_given_alone() {
        let fixture = fixture().await;
        fixture.begin(9).await;
        let other = |change: fn(&mut CodeRedemption)| {
            let mut brought = code(9);
            change(&mut brought);
            brought
        };
        for (brought, expected) in [
            (code(8), ExchangeOutcome::Refused),
            (
                other(|b| b.client = "client_2".into()),
                ExchangeOutcome::Refused,
            ),
            (
                other(|b| b.challenge = "wrong".into()),
                ExchangeOutcome::Refused,
            ),
            (
                other(|b| b.redirect_uri = Some("http://127.0.0.1:2/b".into())),
                ExchangeOutcome::Refused,
            ),
            (
                other(|b| b.resource = Some("https://x/".into())),
                ExchangeOutcome::OtherResource,
            ),
        ] {
            assert_eq!(fixture.redeem(brought, tokens(2, 3)).await, expected);
        }
        assert!(!fixture.has(2));
        assert_eq!(
            fixture.redeem(code(9), tokens(2, 3)).await,
            ExchangeOutcome::Done
        );
        let (link, agent) = fixture
            .vault
            .oauth_links()
            .find([2; 32], RESOURCE)
            .unwrap()
            .unwrap();
        assert_eq!(agent, fixture.agent.token_sha256);
        let elsewhere = fixture
            .vault
            .oauth_links()
            .find([2; 32], "https://other/connect/mcp");
        assert_eq!(elsewhere.unwrap(), None);
        assert!(!fixture.has(3), "a refresh token lets nobody in");
        let changes = fixture.vault.agents().changes();
        assert_eq!(
            fixture.redeem(code(9), tokens(4, 5)).await,
            ExchangeOutcome::Replayed
        );
        assert!(changes.has_changed().unwrap(), "open streams hear of it");
        assert!(!fixture.has(2) && !fixture.has(4));
        assert!(!fixture.vault.oauth_links().is_open(link).unwrap());
        assert_eq!(
            fixture.renew(renewal(3), tokens(6, 7)).await,
            ExchangeOutcome::Refused
        );
    }

    #[tokio::test]
    async fn a_code_and_an_access_token_and_a_link_end_at_their_time() {
        let fixture = fixture().await;
        fixture.begin(9).await;
        fixture.sql("UPDATE oauth_link SET until_ms = until_ms - 60000");
        assert_eq!(
            fixture.redeem(code(9), tokens(2, 3)).await,
            ExchangeOutcome::Refused
        );
        fixture.begin(8).await;
        assert_eq!(fixture.count("oauth_link"), 1, "what is over has made room");
        let brought = CodeRedemption {
            redirect_uri: None,
            resource: None,
            ..code(8)
        };
        assert_eq!(
            fixture.redeem(brought, tokens(2, 3)).await,
            ExchangeOutcome::Done
        );
        fixture.sql("UPDATE oauth_token SET until_ms = until_ms - 3600000");
        assert!(!fixture.has(2));
        let link = "UPDATE oauth_link SET until_ms = 1";
        assert_eq!(
            fixture.renew(renewal(3), tokens(4, 5)).await,
            ExchangeOutcome::Done
        );
        assert!(fixture.has(4));
        fixture.sql(link);
        fixture.sql("UPDATE oauth_token SET until_ms = 1");
        assert_eq!(
            fixture.renew(renewal(5), tokens(6, 7)).await,
            ExchangeOutcome::Refused
        );
    }

    #[tokio::test]
    async fn a_refresh_token_is_good_once_and_a_second_use_ends_the_link() {
        let fixture = fixture().await;
        fixture.begin(9).await;
        fixture.redeem(code(9), tokens(2, 3)).await;
        let stranger = TokenRenewal {
            client: "client_2".to_owned(),
            ..renewal(3)
        };
        assert_eq!(
            fixture.renew(stranger, tokens(4, 5)).await,
            ExchangeOutcome::Refused
        );
        assert_eq!(
            fixture.renew(renewal(2), tokens(4, 5)).await,
            ExchangeOutcome::Refused
        );
        assert_eq!(
            fixture.renew(renewal(3), tokens(4, 5)).await,
            ExchangeOutcome::Done
        );
        assert!(
            fixture.has(2) && fixture.has(4),
            "what is under way goes on"
        );
        assert_eq!(
            fixture.renew(renewal(3), tokens(6, 7)).await,
            ExchangeOutcome::Replayed
        );
        for access in [2, 4, 6] {
            assert!(!fixture.has(access), "{access}");
        }
        assert_eq!(
            fixture.renew(renewal(5), tokens(8, 9)).await,
            ExchangeOutcome::Refused
        );
        assert_eq!(fixture.count("oauth_token"), 0);
    }

    #[tokio::test]
    async fn a_link_ends_with_its_agent_or_with_its_agents_token() {
        let fixture = fixture().await;
        for change in [
            "UPDATE agent SET expires_ms = 1",
            "UPDATE agent SET revoked_ms = 1",
            "UPDATE agent SET token_sha256 = zeroblob(32)",
        ] {
            fixture.begin(9).await;
            fixture.begin(8).await;
            assert_eq!(
                fixture.redeem(code(9), tokens(2, 3)).await,
                ExchangeOutcome::Done
            );
            fixture.sql(change);
            assert_eq!(
                fixture.renew(renewal(3), tokens(4, 5)).await,
                ExchangeOutcome::Refused,
                "{change}"
            );
            assert_eq!(
                fixture.redeem(code(8), tokens(6, 7)).await,
                ExchangeOutcome::Refused,
                "{change}"
            );
            fixture.sql(
                "UPDATE agent SET expires_ms = NULL, revoked_ms = NULL,
                 token_sha256 = X'0101010101010101010101010101010101010101010101010101010101010101'",
            );
            fixture.sql("DELETE FROM oauth_link");
            fixture.sql("DELETE FROM oauth_token");
        }
    }

    #[tokio::test]
    async fn a_program_gives_back_only_what_is_its_own() {
        let fixture = fixture().await;
        fixture.begin(9).await;
        fixture.redeem(code(9), tokens(2, 3)).await;
        let links = fixture.vault.oauth_links();
        assert!(!links.end([2; 32], "client_2".into()).await.unwrap());
        assert!(!links.end([7; 32], "client_1".into()).await.unwrap());
        assert!(fixture.has(2));
        assert!(links.end([3; 32], "client_1".into()).await.unwrap());
        assert!(!fixture.has(2));
    }

    #[tokio::test]
    async fn there_are_bounds() {
        let fixture = fixture().await;
        fixture.begin(200).await;
        fixture.redeem(code(200), tokens(0, 100)).await;
        for n in 0..80 {
            let next = tokens(n + 1, n + 101);
            assert_eq!(
                fixture.renew(renewal(n + 100), next).await,
                ExchangeOutcome::Done
            );
        }
        assert_eq!(
            fixture.count("oauth_token WHERE kind = 'access'"),
            MOST_ACCESS
        );
        assert_eq!(
            fixture.count("oauth_token WHERE kind = 'refresh'"),
            MOST_REFRESH
        );
        assert!(fixture.has(80) && !fixture.has(72));
        for n in 201..=220 {
            fixture.begin(n).await;
        }
        assert_eq!(fixture.count("oauth_link"), MOST_EACH);
        assert!(
            fixture.has(80),
            "codes that nobody has fetched make room first"
        );
    }
}
