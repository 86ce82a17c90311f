//! The paths that have a budget, and how each is walked.

use std::time::Duration;

use tokio::time::sleep;

use crate::args::Args;
use crate::common::Error;
use crate::common::follower::fill;
use crate::common::foreign::{Foreign, tick};
use crate::common::load::{Asked, Caller, Kind};
use crate::common::machine::Pinning;
use crate::common::subscribers::Subscribers;
use crate::common::wire::{Head, Question, Wire};
use crate::counter::{Counted, Counter};
use crate::share::{Share, TOLERATED};

/// Each path is counted so often, after once in which buffers come to their size.
const BATCHES: u32 = 5;

/// Subscribers that are told beside the first one.
const MORE_SUBSCRIBERS: u32 = 64;

/// A change is told at once when the one before was told half a second ago: this is longer.
const QUIET: Duration = Duration::from_millis(700);

/// How what stands before every call is called.
const GUARD: &str = "TLS, HTTP and the guard's chain";

/// How the rows of the audit are called, and what writes one.
const AUDIT: &str = "one row of the audit";
const APPEND: &str = "vault::audit_row::append";

/// How telling is called.
const TOLD: &str = "one notification to one subscriber";

/// A call that has a budget.
struct Path {
    name: &'static str,
    question: Question<'static>,
    tolerated: f64,
}

/// How far above what is accepted is still within it, for a reply that is larger than what a socket takes at once. In how many pieces it goes, and how often
/// what is left is copied, depends on how soon the client reads: counts differ by four per cent.
const TOLERATED_LARGE: f64 = 1.08;

const PATHS: [Path; 4] = [
    Path {
        name: "tools/call, 2026-07-28",
        question: Question {
            wire: Wire::Stateless,
            method: "tools/call",
            name: Some("whoami"),
            params: r#""name":"whoami","arguments":{}"#,
        },
        tolerated: TOLERATED,
    },
    Path {
        name: "tools/call, 2025-11-25",
        question: Question {
            wire: Wire::Stateful,
            method: "tools/call",
            name: None,
            params: r#""name":"whoami","arguments":{}"#,
        },
        tolerated: TOLERATED,
    },
    Path {
        name: "tools/list, 2026-07-28",
        question: Question {
            wire: Wire::Stateless,
            method: "tools/list",
            name: None,
            params: "",
        },
        tolerated: TOLERATED_LARGE,
    },
    Path {
        name: "resources/read, 2026-07-28",
        question: Question {
            wire: Wire::Stateless,
            method: "resources/read",
            name: Some("gatewren:///public/bench/tick"),
            params: r#""uri":"gatewren:///public/bench/tick""#,
        },
        tolerated: TOLERATED,
    },
];

/// What the guard lets in and the next room refuses at once: the whole chain, the body read, and next to nothing
/// behind it.
const REFUSED: &str = "[]";

/// Counts every path.
pub async fn count(args: &Args) -> Result<Vec<Share>, Error> {
    let counter = Counter::start(&args.common, Pinning::begin())?;
    let bench = r#"[{"op":"add","path":"/public/bench","value":{"tick":0}}]"#;
    let writer = fill(&counter.ours, &[bench.to_owned()]).await?;
    let refused = refused(&counter, args.calls).await?;
    let mut shares = vec![Share::of_all(GUARD, &refused.front, args.calls)];
    for (n, path) in PATHS.iter().enumerate() {
        let done = walk(&counter, path, args.calls).await?;
        let share = Share::of_all(path.name, &done.front, args.calls);
        shares.push(share.tolerating(path.tolerated));
        if n == 0 {
            shares.push(Share::of_part(AUDIT, done.behind.of(APPEND)));
        }
    }
    shares.push(told(&counter, &writer, args.changes).await?);
    let missing = shares.iter().find(|share| !share.instructions.is_normal());
    match missing {
        None => Ok(shares),
        Some(share) => Err(format!("{}: nothing was counted", share.name).into()),
    }
}

/// The difference that further subscribers make, by the notification.
async fn told(counter: &Counter, writer: &Foreign, changes: u32) -> Result<Share, Error> {
    let mut number = 0;
    let mut fronts = Vec::new();
    for subscribers in [1, 1 + MORE_SUBSCRIBERS] {
        let uri = |_| "gatewren:///public/bench/tick".to_owned();
        let mut listeners = Subscribers::ours(&counter.ours, subscribers, uri).await?;
        let mut least = Least::default();
        // The first is not as warm as the others.
        for n in 0..=changes {
            number += 1;
            counter.grind.reset()?;
            let revision = writer.commit(&tick("tick", number))?;
            listeners.told(subscribers, Some(revision)).await?;
            sleep(QUIET).await;
            least.of(counter.grind.take()?, n > 0);
        }
        fronts.push(least.0.unwrap_or_default().front);
    }
    match fronts.as_slice() {
        [one, many] => Ok(Share::of_difference(TOLD, many, one, MORE_SUBSCRIBERS)),
        _ => Err("two were to be counted".into()),
    }
}

/// Requests that come through the guard's chain and no further.
async fn refused(counter: &Counter, calls: u32) -> Result<Counted, Error> {
    let ours = &counter.ours;
    let head = Head::new(ours.address.socket());
    let head = head.with("authorization", &format!("Bearer {}", ours.token));
    let request = head.request(REFUSED);
    let mut connection = ours.address.open().await?;
    let mut least = Least::default();
    for n in 0..=BATCHES {
        counter.grind.reset()?;
        for _ in 0..calls {
            let status = connection.exchange(&request).await?.status();
            if status != "400" {
                return Err(format!("what was to be refused was answered with {status}").into());
            }
        }
        least.of(counter.grind.take()?, n > 0);
    }
    Ok(least.0.unwrap_or_default())
}

/// Calls, one after the other.
async fn walk(counter: &Counter, path: &Path, calls: u32) -> Result<Counted, Error> {
    let ours = &counter.ours;
    let asked = Asked {
        address: &ours.address,
        pid: ours.pid(),
        question: &path.question,
        kind: Kind::Mcp(&ours.token),
    };
    let mut caller = Caller::open(&asked).await?;
    let mut least = Least::default();
    for n in 0..=BATCHES {
        counter.grind.reset()?;
        for _ in 0..calls {
            caller.once().await?;
        }
        least.of(counter.grind.take()?, n > 0);
    }
    Ok(least.0.unwrap_or_default())
}

/// The batch in which the least was done: what gatewren does beside, such as to look at its box, is not the calls'.
#[derive(Default)]
struct Least(Option<Counted>);

impl Least {
    /// Takes another batch into account, once it is warm.
    fn of(&mut self, counted: Counted, is_warm: bool) {
        let instructions = |counted: &Counted| counted.front.instructions;
        let before = self.0.as_ref().map_or(u64::MAX, instructions);
        if is_warm && instructions(&counted) < before {
            self.0 = Some(counted);
        }
    }
}
