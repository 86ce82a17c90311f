//! W11: the time of one agent's command while another agent asks for 150 long commands.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::common::Error;
use crate::common::load::{Asked, Caller, Kind, sample};
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::Context;
use crate::figure::Figure;
use crate::shell::{HOST, Served, says_hi};

/// Concurrent commands of the flooding agent.
const FLOOD: u32 = 150;

/// After this time the flooding agent's commands run.
const SETTLED: Duration = Duration::from_secs(1);

/// The pause of the flooding agent after a refusal.
const PAUSE: Duration = Duration::from_millis(50);

const LONG: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("system_shell"),
    params: r#""name":"system_shell","arguments":{"argv":["/bin/sleep","300"],"timeout_s":300}"#,
};

/// Returns the median during the flood, divided by the median without it.
pub async fn measure(cx: &Context) -> Result<Figure, Error> {
    let (mut ratios, mut medians) = (Vec::new(), (0.0, 0.0));
    for _ in cx.rounds() {
        let served = Served::start(cx, None)?;
        let token = served.add_agent("other", &cx.args.common)?;
        let asked = Asked {
            kind: Kind::Mcp(&token),
            ..served.asked(&HOST)
        };
        says_hi(&asked).await?;
        let time = cx.args.common.seconds;
        let alone = sample(&asked, 1, time).await?;
        let flood = begin(&served.asked(&LONG)).await?;
        tokio::time::sleep(SETTLED).await;
        let flooded = sample(&asked, 1, time).await?;
        drop(flood);
        ratios.push(flooded.p50_us / alone.p50_us);
        medians = (alone.p50_us, flooded.p50_us);
    }
    let (alone, flooded) = medians;
    let words = format!("{flooded:.0} us beside {alone:.0} without");
    Ok(Figure::of("flooded-call", Spread::of(ratios.into_iter())).noted(words))
}

/// Starts callers that ask for a long command, and retry when it is refused, until they are dropped.
async fn begin(asked: &Asked<'_>) -> Result<JoinSet<()>, Error> {
    let mut flood = JoinSet::new();
    for _ in 0..FLOOD {
        let mut caller = Caller::open(asked).await?;
        flood.spawn(async move {
            loop {
                // The helper refuses most of them.
                let _ = caller.once().await;
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    Ok(flood)
}
