//! W2, W9: reads of documents, and the sustained rate of many reads a second.

use std::time::Duration;

use crate::common::Error;
use crate::common::follower::fill;
use crate::common::load::sample;
use crate::common::pair::{compare, noise};
use crate::common::servers::Gatewren;
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::Context;
use crate::documents::SIZES;
use crate::figure::{Figure, Findings};
use crate::reads;

/// Connections that read at the same time.
const CONNECTIONS: u32 = 64;

/// The number of samples of the sustained rate.
const SUSTAINED: u32 = 10;

/// A number in the state.
pub const TICK: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "resources/read",
    name: Some("gatewren:///public/bench/tick"),
    params: r#""uri":"gatewren:///public/bench/tick""#,
};

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    let common = &cx.args.common;
    let mut sizes = SIZES.map(|size| (size, Vec::new()));
    for _ in cx.rounds() {
        for (size, rounds) in &mut sizes {
            rounds.push(reads::measure(common, *size, cx.pinning).await?);
        }
    }
    let mut findings = Findings::default();
    let mut noises = Vec::new();
    for (size, rounds) in &sizes {
        let triples: Vec<_> = rounds.iter().map(|read| read.triple).collect();
        let cpu = compare(&triples, |s| s.cpu_us);
        let key = format!("read-{}", size.name.replace(' ', "-"));
        let note = format!(
            "{:.0} us beside hyper's {:.0}",
            cpu.subject.median, cpu.anchor.median
        );
        findings
            .figures
            .push(Figure::of(&key, cpu.ratio).noted(note));
        let peak = Spread::of(rounds.iter().map(|read| read.peak_kib / 1024.0));
        findings
            .figures
            .push(Figure::of(format!("{key}-memory"), peak));
        noises.push(noise(&triples).median);
    }
    findings.noise = Some(Spread::of(noises.into_iter()));
    findings.figures.push(sustained(cx).await?);
    Ok(findings)
}

async fn sustained(cx: &Context) -> Result<Figure, Error> {
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    let bench = r#"[{"op":"add","path":"/public/bench","value":{"tick":0}}]"#;
    fill(&ours, &[bench.to_owned()]).await?;
    let asked = ours.asked(&TICK);
    let time = cx.args.common.seconds;
    let mut rates = Vec::new();
    let mut whole = Duration::ZERO;
    for _ in 0..SUSTAINED {
        rates.push(sample(&asked, CONNECTIONS, time).await?.rate);
        whole += time;
    }
    let words = format!("over {:.1} s", whole.as_secs_f64());
    Ok(Figure::of("audited-reads", Spread::of(rates.into_iter())).noted(words))
}
