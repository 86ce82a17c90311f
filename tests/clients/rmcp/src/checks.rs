//! A check: a line on standard output, and changes that the runner makes on the host.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin, stdin};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

/// The time limit for an event that must happen.
const EVENT: Duration = Duration::from_secs(60);

/// The interval after which a row is written again, for a stream that was disconnected.
const AGAIN: Duration = Duration::from_secs(2);

/// The result of a check; the error is a text.
pub type Outcome<T = ()> = Result<T, String>;

/// Returns any error as text.
pub fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Fails with `why` unless `truth` holds.
pub fn expect(truth: bool, why: impl std::fmt::Debug) -> Outcome {
    if truth {
        Ok(())
    } else {
        Err(format!("{why:?}"))
    }
}

/// The checks of one client, and whether one failed.
pub struct Checks {
    name: String,
    answers: Lines<BufReader<Stdin>>,
    pub failed: bool,
}

impl Checks {
    pub fn of(name: String) -> Self {
        let answers = BufReader::new(stdin()).lines();
        Self {
            name,
            answers,
            failed: false,
        }
    }

    /// Prints the outcome, and returns its value.
    pub fn report<T>(&mut self, what: &str, outcome: Outcome<T>) -> Option<T> {
        match outcome {
            Ok(value) => {
                say(&format!("ok {} {what}", self.name));
                Some(value)
            }
            Err(why) => {
                self.failed = true;
                let why: Vec<_> = why.split_whitespace().collect();
                say(&format!("not ok {} {what}: {}", self.name, why.join(" ")));
                None
            }
        }
    }

    /// Prints that a check is skipped because there is no container.
    pub fn skip(&self, what: &str) {
        say(&format!("skip {} {what}: no LXC lab here", self.name));
    }

    /// Asks the runner for a change on the host.
    pub async fn ask(&mut self, what: &str) -> Outcome {
        say(&format!("ask {what}"));
        let answer = self.answers.next_line().await.map_err(words)?;
        expect(answer.as_deref() == Some("done"), answer)
    }

    /// Waits for a notification of `uri` that comes after a change was asked for.
    pub async fn hears(
        &mut self,
        ear: &mut UnboundedReceiver<String>,
        uri: &str,
        change: &str,
    ) -> Outcome {
        while ear.try_recv().is_ok() {}
        self.ask(change).await?;
        expect(
            heard(ear, uri, EVENT).await,
            format!("no notice for {uri} within {EVENT:?}"),
        )
    }

    /// Does the same for a stream that may still be opening: repeats the change until a notification comes.
    pub async fn hears_in_the_end(
        &mut self,
        ear: &mut UnboundedReceiver<String>,
        uri: &str,
        change: &str,
    ) -> Outcome {
        let started = Instant::now();
        while started.elapsed() < EVENT {
            self.ask(change).await?;
            if heard(ear, uri, AGAIN).await {
                return Ok(());
            }
        }
        Err(format!(
            "no notice for {uri} within {EVENT:?}, whatever changes"
        ))
    }
}

async fn heard(ear: &mut UnboundedReceiver<String>, uri: &str, bound: Duration) -> bool {
    let notice = async {
        while let Some(heard) = ear.recv().await {
            if heard == uri {
                return true;
            }
        }
        false
    };
    timeout(bound, notice).await.unwrap_or(false)
}

/// Retries until it works: a broken connection may be noticed only by the next request on it.
pub async fn eventually<T>(mut act: impl AsyncFnMut() -> Outcome<T>) -> Outcome<T> {
    let started = Instant::now();
    loop {
        match act().await {
            Err(_) if started.elapsed() < EVENT => sleep(Duration::from_millis(100)).await,
            outcome => return outcome,
        }
    }
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
