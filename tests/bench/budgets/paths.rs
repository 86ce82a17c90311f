//! The paths that have a budget, and how each is measured.

use std::time::Duration;

use tokio::time::sleep;

use crate::args::Args;
use crate::common::Error;
use crate::common::follower::fill;
use crate::common::foreign::{Foreign, tick};
use crate::common::load::{Asked, Caller};
use crate::common::machine::Pinning;
use crate::common::servers::Gatewren;
use crate::common::subscribers::Subscribers;
use crate::common::wire::{Head, Question, Wire};
use crate::counter::{Counted, Counter};
use crate::emulated::{Emulated, Processor};
use crate::pages;
use crate::profile::{Function, Profile};
use crate::share::Share;

/// The number of batches of each path, after one in which buffers grow to their size. gatewren's background work
/// depends on time, so one of many short batches is more likely free of it than one of a few long ones.
const BATCHES: u32 = 10;

/// The client's receive buffer in bytes. The server can then send replies as soon as it writes them, and the number
/// of pieces does not depend on when the client reads.
const ROOM: usize = 4 << 20;

/// Subscribers in addition to the first one.
const MORE_SUBSCRIBERS: u32 = 64;

/// A change is sent at once if the last one was sent at least half a second before: this is longer.
const QUIET: Duration = Duration::from_millis(700);

/// The name of the path before every call.
const GUARD: &str = "TLS, HTTP and the guard's chain";

/// The name of the path for audit rows, and the function that writes one.
const AUDIT: &str = "one row of the audit";
const APPEND: &str = "vault::audit::row::RowInserter::append";

/// The name of the path for notifications.
const TOLD: &str = "one notification to one subscriber";

/// A call that has a budget.
struct Path {
    name: &'static str,
    question: Question<'static>,
    /// Whether it is also counted on other processors.
    everywhere: bool,
}

const PATHS: [Path; 4] = [
    Path {
        name: "tools/call, 2026-07-28",
        question: Question {
            wire: Wire::Stateless,
            method: "tools/call",
            name: Some("whoami"),
            params: r#""name":"whoami","arguments":{}"#,
        },
        everywhere: true,
    },
    Path {
        name: "tools/call, 2025-11-25",
        question: Question {
            wire: Wire::Stateful,
            method: "tools/call",
            name: None,
            params: r#""name":"whoami","arguments":{}"#,
        },
        everywhere: false,
    },
    Path {
        name: "tools/list, 2026-07-28",
        question: Question {
            wire: Wire::Stateless,
            method: "tools/list",
            name: None,
            params: "",
        },
        everywhere: false,
    },
    Path {
        name: "resources/read, 2026-07-28",
        question: Question {
            wire: Wire::Stateless,
            method: "resources/read",
            name: Some("gatewren:///public/bench/tick"),
            params: r#""uri":"gatewren:///public/bench/tick""#,
        },
        everywhere: true,
    },
];

/// A body that the guard accepts and the next room rejects at once: the whole chain, a body that is read, and almost
/// nothing after it.
const REFUSED: &str = "[]";

/// Counts every path.
pub async fn count(args: &Args) -> Result<Vec<Share>, Error> {
    let pinning = Pinning::begin();
    let mut shares = here(args, pinning).await?;
    shares.extend(pages::count(args, pinning).await?);
    let others = [
        (Processor::Arm64, &args.arm64),
        (Processor::Armhf, &args.armhf),
    ];
    for (processor, binary) in others {
        if let Some(binary) = binary {
            let emulated = Emulated::start(args, pinning, processor, binary)?;
            shares.extend(elsewhere(&emulated, processor, args.calls).await?);
        }
    }
    let missing = shares.iter().find(|share| !share.instructions.is_normal());
    match missing {
        None => Ok(shares),
        Some(share) => Err(format!("{}: nothing was counted", share.name).into()),
    }
}

/// Counts on this processor, with callgrind.
async fn here(args: &Args, pinning: Pinning) -> Result<Vec<Share>, Error> {
    let counter = Counter::start(&args.common, pinning)?;
    let writer = with_something_to_read(&counter.ours).await?;
    let refused = refused(&counter, args.calls).await?;
    let mut shares = vec![Share::of_all(GUARD, &refused.front(), args.calls)];
    for (n, path) in PATHS.iter().enumerate() {
        let done = walk(&counter, path, args.calls).await?;
        if n == 0 {
            shares.push(Share::of_part(AUDIT, done.behind(APPEND)));
        }
        shares.push(Share::of_all(path.name, &done.front(), args.calls));
    }
    shares.push(told(&counter, &writer, args.changes).await?);
    Ok(shares)
}

/// Counts on another one, with qemu.
async fn elsewhere(
    emulated: &Emulated,
    processor: Processor,
    calls: u32,
) -> Result<Vec<Share>, Error> {
    with_something_to_read(&emulated.ours).await?;
    let mut shares = Vec::new();
    for path in PATHS.iter().filter(|path| path.everywhere) {
        let mut caller = caller(&emulated.ours, path).await?;
        let mut least = u64::MAX;
        for n in 0..=BATCHES {
            let before = emulated.front()?;
            for _ in 0..calls {
                caller.once().await?;
            }
            let counted = emulated.front()? - before;
            if n > 0 {
                least = least.min(counted);
            }
        }
        let name = format!("{}, {}", path.name, processor.name());
        shares.push(Share::of_count(name, least, calls));
    }
    Ok(shares)
}

/// Writes the value that calls read and changes replace into the state.
async fn with_something_to_read(ours: &Gatewren) -> Result<Foreign, Error> {
    let bench = r#"[{"op":"add","path":"/public/bench","value":{"tick":0}}]"#;
    fill(ours, &[bench.to_owned()]).await
}

/// Opens a connection that calls a path.
async fn caller(ours: &Gatewren, path: &Path) -> Result<Caller, Error> {
    let asked = Asked {
        address: &ours.address.clone().with_room(ROOM),
        ..ours.asked(&path.question)
    };
    Caller::open(&asked).await
}

/// Counts the difference that more subscribers make, per notification.
async fn told(counter: &Counter, writer: &Foreign, changes: u32) -> Result<Share, Error> {
    let mut number = 0;
    let mut fronts = Vec::new();
    for subscribers in [1, 1 + MORE_SUBSCRIBERS] {
        let uri = |_| "gatewren:///public/bench/tick".to_owned();
        let mut listeners = Subscribers::ours(&counter.ours, subscribers, uri).await?;
        let mut batches = Batches::default();
        // The first batch runs with cold caches.
        for n in 0..=changes {
            number += 1;
            counter.grind.reset()?;
            let revision = writer.commit(&tick("tick", number))?;
            listeners.told(subscribers, Some(revision)).await?;
            sleep(QUIET).await;
            batches.add(counter.grind.take()?, n > 0);
        }
        fronts.push(batches.front());
    }
    match fronts.as_slice() {
        [one, many] => Ok(Share::of_difference(TOLD, many, one, MORE_SUBSCRIBERS)),
        _ => Err("two were to be counted".into()),
    }
}

/// Counts requests that pass the guard's chain and are then rejected.
async fn refused(counter: &Counter, calls: u32) -> Result<Batches, Error> {
    let ours = &counter.ours;
    let head = Head::new(ours.address.socket());
    let head = head.with("authorization", &format!("Bearer {}", ours.token));
    let request = head.request(REFUSED);
    let mut connection = ours.address.open().await?;
    let mut batches = Batches::default();
    for n in 0..=BATCHES {
        counter.grind.reset()?;
        for _ in 0..calls {
            let status = connection.exchange(&request).await?.status();
            if status != "400" {
                return Err(format!("what was to be refused was answered with {status}").into());
            }
        }
        batches.add(counter.grind.take()?, n > 0);
    }
    Ok(batches)
}

/// Counts sequential calls.
async fn walk(counter: &Counter, path: &Path, calls: u32) -> Result<Batches, Error> {
    let mut caller = caller(&counter.ours, path).await?;
    let mut batches = Batches::default();
    for n in 0..=BATCHES {
        counter.grind.reset()?;
        for _ in 0..calls {
            caller.once().await?;
        }
        batches.add(counter.grind.take()?, n > 0);
    }
    Ok(batches)
}

/// The counts of several batches.
#[derive(Default)]
struct Batches(Vec<Counted>);

impl Batches {
    /// Adds a batch, unless it is a warm-up.
    fn add(&mut self, counted: Counted, is_warm: bool) {
        if is_warm {
            self.0.push(counted);
        }
    }

    /// Returns the front's counts of the cheapest batch: background work, such as inspecting the host, does not
    /// belong to the calls. The allocations may come from another batch.
    fn front(self) -> Profile {
        let fronts = self.0.into_iter().map(|counted| counted.front);
        let fronts: Vec<Profile> = fronts.collect();
        let allocations = fronts.iter().map(|front| front.allocations).min();
        let least = fronts.into_iter().min_by_key(|front| front.instructions);
        Profile {
            allocations: allocations.unwrap_or_default(),
            ..least.unwrap_or_default()
        }
    }

    /// Returns the counts of the functions with this name in the other threads, from the batch with the cheapest
    /// call.
    fn behind(&self, part: &str) -> Function {
        let found = self.0.iter().map(|counted| counted.behind.of(part));
        let each = |function: &Function| function.whole.checked_div(function.called);
        let least = found
            .filter(|function| function.called > 0)
            .min_by_key(each);
        least.unwrap_or_default()
    }
}
