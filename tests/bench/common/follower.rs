//! Asks a daemon how far it has followed what another program committed.

use std::time::{Duration, Instant};

use super::Error;
use super::foreign::Foreign;
use super::load::Caller;
use super::servers::Gatewren;
use super::wire::{Question, Wire};

/// What the daemon has not read by then, it has lost.
const FOLLOWED_WITHIN: Duration = Duration::from_mins(1);

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(1);

/// A small thing to ask for; the answer names the revision that it is true for.
const TICK: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "resources/read",
    name: Some("gatewren:///public/bench/tick"),
    params: r#""uri":"gatewren:///public/bench/tick""#,
};

/// A connection to the daemon.
pub struct Follower(Caller);

impl Follower {
    /// To this one.
    pub async fn new(ours: &Gatewren) -> Result<Self, Error> {
        let asked = ours.asked(&TICK);
        Ok(Self(Caller::open(&asked).await?))
    }

    /// Waits until the daemon answers with this revision or a later one.
    pub async fn reaches(&mut self, revision: i64) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            // Until the first patch is there, there is nothing to read.
            let read = self.0.once().await;
            if read.is_ok() && revision_in(self.0.reply()) >= Some(revision) {
                return Ok(());
            }
            if began.elapsed() > FOLLOWED_WITHIN {
                return Err(format!("the daemon does not come to revision {revision}").into());
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

/// Commits patches to a daemon's state and waits until the daemon has them.
pub async fn fill(ours: &Gatewren, patches: &[String]) -> Result<Foreign, Error> {
    let foreign = Foreign::of_state(&ours.state_file())?;
    let mut newest = 0;
    for patch in patches {
        newest = foreign.commit(patch)?;
    }
    Follower::new(ours).await?.reaches(newest).await?;
    Ok(foreign)
}

/// The revision that a reply or a notification of gatewren names.
pub fn revision_in(message: &[u8]) -> Option<i64> {
    const KEY: &str = r#""gatewren/revision":"#;
    let text = str::from_utf8(message).ok()?;
    let (_, rest) = text.split_once(KEY)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
