//! Reading a resource over TLS, with hyper and a body of the same length, and with the value's own serialisation.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::common::Error;
use crate::common::args::Common;
use crate::common::follower::fill;
use crate::common::load::Sample;
use crate::common::machine::{Pinning, forget_peak, memory_kib};
use crate::common::pair::{Pair, Triple};
use crate::common::servers::Gatewren;
use crate::common::wire::{Question, Wire};
use crate::documents::Size;

/// The number of runs of `serde_json::to_vec`; the shortest counts.
const SERIALISATIONS: u32 = 5;

/// The time for the state to copy the document for its next commit.
const SETTLING: Duration = Duration::from_secs(5);

/// One round at one size of the document.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// The length of a reply's body in bytes.
    pub bytes: usize,
    /// gatewren between two samples of hyper.
    pub triple: Triple,
    /// `serde_json::to_vec` of the same value, in microseconds.
    pub to_vec_us: f64,
    /// The peak of gatewren's resident memory above that before the reads, in KiB.
    pub peak_kib: f64,
}

impl Read {
    /// Returns the server's CPU beyond hyper's for the same length, as a multiple of one serialisation of the value.
    pub fn serialisations(&self) -> f64 {
        let [before, after] = self.triple.anchor.map(|Sample { cpu_us, .. }| cpu_us);
        (self.triple.subject.cpu_us - f64::midpoint(before, after)) / self.to_vec_us
    }
}

/// Measures one connection for `args.seconds` on each side.
pub async fn measure(args: &Common, size: Size, pinning: Pinning) -> Result<Read, Error> {
    let ours = Gatewren::start(args, pinning)?;
    fill(&ours, &size.patches()).await?;
    let uri = format!("gatewren:///public/bench/{}", size.key);
    let params = format!(r#""uri":"{uri}""#);
    let question = Question {
        wire: Wire::Stateless,
        method: "resources/read",
        name: Some(&uri),
        params: &params,
    };
    // Work that the commits have left does not count as reading.
    sleep(SETTLING).await;
    let before = memory_kib(ours.pid(), "VmRSS")?;
    forget_peak(ours.pid())?;
    let pair = Pair::ours(&question, &ours, pinning).await?;
    let triple = pair.triple(1, args.seconds).await?;
    Ok(Read {
        bytes: pair.size,
        triple,
        to_vec_us: to_vec_us(size)?,
        peak_kib: memory_kib(ours.pid(), "VmHWM")? - before,
    })
}

fn to_vec_us(size: Size) -> Result<f64, Error> {
    let value = size.value();
    let mut least = f64::INFINITY;
    for _ in 0..SERIALISATIONS {
        let began = Instant::now();
        black_box(serde_json::to_vec(black_box(&value))?);
        least = least.min(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(least)
}
