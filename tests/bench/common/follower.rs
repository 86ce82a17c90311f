//! Asks a daemon up to which revision it has read the commits of another program.

use std::time::{Duration, Instant};

use super::Error;
use super::foreign::Foreign;
use super::load::Caller;
use super::servers::Gatewren;
use super::wire::{Question, Wire};

/// The time limit; a revision that the daemon has not read by then is lost.
const FOLLOWED_WITHIN: Duration = Duration::from_mins(1);

/// The interval between requests.
const EVERY: Duration = Duration::from_millis(1);

/// A small resource; the response names its revision.
const TICK: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "resources/read",
    name: Some("gatewren:///public/bench/tick"),
    params: r#""uri":"gatewren:///public/bench/tick""#,
};

/// A connection to the daemon.
pub struct Follower(Caller);

impl Follower {
    /// Connects to this daemon.
    pub async fn new(ours: &Gatewren) -> Result<Self, Error> {
        let asked = ours.asked(&TICK);
        Ok(Self(Caller::open(&asked).await?))
    }

    /// Waits until the daemon responds with this revision or a later one.
    pub async fn reaches(&mut self, revision: i64) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            // Before the first patch, there is nothing to read.
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

/// Commits patches to a daemon's state and waits until the daemon has read them.
pub async fn fill(ours: &Gatewren, patches: &[String]) -> Result<Foreign, Error> {
    let foreign = Foreign::of_state(&ours.state_file())?;
    let mut newest = 0;
    for patch in patches {
        newest = foreign.commit(patch)?;
    }
    Follower::new(ours).await?.reaches(newest).await?;
    Ok(foreign)
}

/// Returns the revision in a reply or a notification of gatewren.
pub fn revision_in(message: &[u8]) -> Option<i64> {
    const KEY: &str = r#""gatewren/revision":"#;
    let text = str::from_utf8(message).ok()?;
    let (_, rest) = text.split_once(KEY)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
