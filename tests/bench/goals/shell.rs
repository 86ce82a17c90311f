//! G8, G9, W3 to W5, W11: commands on the host and in a container, by loops that start the same without a server.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::Error;
use crate::common::args::Common;
use crate::common::load::{Asked, Caller, sample};
use crate::common::machine::{cpu_with_children_us, forget_peak, memory_kib, tree};
use crate::common::peers::{Ability, Peer};
use crate::common::servers::{Gatewren, Home, Running};
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::{Context, say};
use crate::figure::{Figure, Findings};
use crate::flooded;
use crate::spawn::{self, Loop, Spawned};

/// The command of every measurement: dash prints a word.
const SAY: [&str; 3] = ["/bin/sh", "-c", "echo hi"];

/// The name of the container for commands.
const CONTAINER: &str = "alpha";

/// A sample is longer than elsewhere: the kernel's clock counts a child's CPU in steps of 10 ms.
const TIMES_AS_LONG: u32 = 3;

pub const HOST: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("system_shell"),
    params: r#""name":"system_shell","arguments":{"argv":["/bin/sh","-c","echo hi"]}"#,
};

/// A gigabyte.
const FLOOD: &str = "1000000000";
const FLOOD_BYTES: f64 = 1e9;

/// One side of a row at one number of connections.
#[derive(Debug, Clone, Copy)]
struct Round {
    alone: Loop,
    served: Loop,
}

/// Both numbers of connections.
#[derive(Default)]
struct Rounds {
    one: Vec<Round>,
    eight: Vec<Round>,
}

impl Rounds {
    fn cpu(&self, eight: bool) -> Spread {
        let rounds = if eight { &self.eight } else { &self.one };
        Spread::of(rounds.iter().map(|r| r.served.cpu_us / r.alone.cpu_us))
    }

    /// Returns how much longer the median is than without a server.
    fn beyond(&self, unit_us: f64) -> Spread {
        let beyond = self.one.iter();
        Spread::of(beyond.map(|r| (r.served.p50_us - r.alone.p50_us) / unit_us))
    }

    fn words(&self) -> String {
        let of = |figure: fn(&Round) -> f64| Spread::of(self.one.iter().map(figure)).median;
        format!(
            "{:.0} us beside {:.0}; CPU {:.0} us beside {:.0}",
            of(|r| r.served.p50_us),
            of(|r| r.alone.p50_us),
            of(|r| r.served.cpu_us),
            of(|r| r.alone.cpu_us)
        )
    }
}

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    let mut ours = Rounds::default();
    let mut inside = Rounds::default();
    let able = cx.peers.iter().filter(|peer| peer.can(Ability::Shell));
    let mut peers: Vec<(&Peer, Rounds)> = able.map(|peer| (peer, Rounds::default())).collect();
    for _ in cx.rounds() {
        host(cx, &mut ours).await?;
        for (peer, rounds) in &mut peers {
            let server = peer.start(cx.pinning).await?;
            let question = on_peer(peer.wire());
            let asked = server.asked(&question);
            pair(cx, &asked, &[server.pid()], &SAY.map(str::to_owned), rounds)
                .await
                .map_err(|cause| format!("{}: {cause}", peer.name))?;
        }
        if let Some(lxcpath) = &cx.args.lxcpath {
            container(cx, lxcpath, &mut inside).await?;
        }
    }
    let mut findings = Findings {
        figures: figures(&ours, &peers),
        ..Findings::default()
    };
    findings.figures.push(match cx.args.lxcpath {
        Some(_) => Figure::of("container-shell", inside.beyond(1e3)).noted(inside.words()),
        None => Figure::without("container-shell", "no containers: only root can start them"),
    });
    say("now one agent floods the server")?;
    findings.figures.push(flooded::measure(cx).await?);
    say("now a command prints 1 GB")?;
    findings.figures.extend(flood(cx).await?);
    Ok(findings)
}

fn figures(ours: &Rounds, peers: &[(&Peer, Rounds)]) -> Vec<Figure> {
    let each = |figure: &dyn Fn(&Rounds) -> Spread| -> Vec<(String, Spread)> {
        peers
            .iter()
            .map(|(peer, rounds)| (peer.name.clone(), figure(rounds)))
            .collect()
    };
    let us = |rounds: &Rounds| rounds.beyond(1.0);
    let ms = |rounds: &Rounds| rounds.beyond(1e3);
    vec![
        Figure::of("shell-cpu-1", ours.cpu(false))
            .beside(each(&|rounds| rounds.cpu(false)))
            .noted("front, helper and child; the peers start the child themselves"),
        Figure::of("shell-cpu-8", ours.cpu(true)).beside(each(&|rounds| rounds.cpu(true))),
        Figure::of("shell-p50", us(ours))
            .beside(each(&us))
            .noted("through the helper, with cgroup and reaper, as W3"),
        Figure::of("host-shell", ms(ours))
            .beside(each(&ms))
            .noted(ours.words()),
    ]
}

/// gatewren, and a helper that allows more than in a fresh installation.
pub struct Served {
    ours: Gatewren,
    helper: Running,
}

impl Served {
    /// Starts both.
    pub fn start(cx: &Context, lxcpath: Option<&Path>) -> Result<Self, Error> {
        let common = &cx.args.common;
        let home = Home::with(common, lxcpath)?;
        let helper = home.start_helper_with(cx.pinning.server(&common.binary), common)?;
        let process = home.start(common, cx.pinning)?;
        let ours = Gatewren::of(home, process)?;
        Ok(Self { ours, helper })
    }

    /// Adds an agent that may do everything, and returns its token.
    pub fn add_agent(&self, name: &str, args: &Common) -> Result<String, Error> {
        self.ours.add_agent(name, args)
    }

    /// Returns the question with this server, as the first agent of its state.
    pub fn asked<'a>(&'a self, question: &'a Question<'a>) -> Asked<'a> {
        self.ours.asked(question)
    }

    fn pids(&self) -> [u32; 2] {
        [self.ours.pid(), self.helper.pid()]
    }
}

async fn host(cx: &Context, rounds: &mut Rounds) -> Result<(), Error> {
    let ours = Served::start(cx, None)?;
    let alone = SAY.map(str::to_owned);
    pair(cx, &ours.asked(&HOST), &ours.pids(), &alone, rounds).await
}

async fn container(cx: &Context, lxcpath: &Path, rounds: &mut Rounds) -> Result<(), Error> {
    let ours = Served::start(cx, Some(lxcpath))?;
    let params = format!(
        r#""name":"container_shell","arguments":{{"container":"{CONTAINER}","argv":["/bin/sh","-c","echo hi"]}}"#
    );
    let question = Question {
        wire: Wire::Stateless,
        method: "tools/call",
        name: Some("container_shell"),
        params: &params,
    };
    let lxcpath = lxcpath.to_string_lossy();
    let attach = ["/usr/bin/lxc-attach", "-P", &lxcpath, "-n", CONTAINER, "--"];
    let alone = attach.iter().chain(&SAY).map(ToString::to_string);
    let alone: Vec<String> = alone.collect();
    pair(cx, &ours.asked(&question), &ours.pids(), &alone, rounds).await
}

fn on_peer(wire: Wire) -> Question<'static> {
    Question {
        wire,
        method: "tools/call",
        name: Some("shell"),
        params: r#""name":"shell","arguments":{"command":"echo hi"}"#,
    }
}

/// Measures the loop and then the server, on one connection and on eight.
async fn pair(
    cx: &Context,
    asked: &Asked<'_>,
    pids: &[u32],
    alone: &[String],
    rounds: &mut Rounds,
) -> Result<(), Error> {
    says_hi(asked).await?;
    let time = cx.args.common.seconds * TIMES_AS_LONG;
    for (parallel, rounds) in [(1, &mut rounds.one), (8, &mut rounds.eight)] {
        let spawned = Spawned {
            argv: alone.to_vec(),
            seconds: time.as_secs_f64(),
            parallel,
        };
        let alone = spawn::measure(&spawned, cx.pinning)?;
        let served = served(asked, pids, parallel, time).await?;
        rounds.push(Round { alone, served });
    }
    Ok(())
}

/// Waits until a command prints "hi": a fresh gatewren does not yet have all data about its host.
pub async fn says_hi(asked: &Asked<'_>) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let mut caller = Caller::open(asked).await?;
        let answer = caller.once().await;
        let text = String::from_utf8_lossy(caller.reply()).into_owned();
        // Some servers encode the output into JSON twice.
        if answer.is_ok() && text.contains(r#""hi\"#) {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(10) {
            return Err(format!("not what the command printed: {text}").into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Measures the CPU of the server, of its processes for commands, and of the commands.
async fn served(
    asked: &Asked<'_>,
    pids: &[u32],
    connections: u32,
    time: Duration,
) -> Result<Loop, Error> {
    // The parent counts a command that exits in between.
    let cpu = || -> f64 {
        let each = pids.iter().flat_map(|pid| tree(*pid));
        each.map(|one| cpu_with_children_us(one).unwrap_or_default())
            .sum()
    };
    let (before, began) = (cpu(), Instant::now());
    let sample = sample(asked, connections, time).await?;
    let spent = cpu() - before;
    // The warm-up calls took their CPU too, as much for each.
    let calls = sample.rate * began.elapsed().as_secs_f64();
    Ok(Loop {
        cpu_us: spent / calls,
        p50_us: sample.p50_us,
    })
}

/// Measures a command that prints 1 GB, and the same through a pipe to `cat`.
async fn flood(cx: &Context) -> Result<[Figure; 2], Error> {
    let served = Served::start(cx, None)?;
    let ours = &served.ours;
    let params = format!(
        r#""name":"system_shell","arguments":{{"timeout_s":120,"argv":["head","-c","{FLOOD}","/dev/zero"]}}"#
    );
    let question = Question {
        wire: Wire::Stateless,
        method: "tools/call",
        name: Some("system_shell"),
        params: &params,
    };
    says_hi(&served.asked(&HOST)).await?;
    let mut caller = Caller::open(&served.asked(&question)).await?;
    let resident = memory_kib(ours.pid(), "VmRSS")?;
    forget_peak(ours.pid())?;
    let (took, _) = caller.once().await?;
    let moved = (memory_kib(ours.pid(), "VmHWM")? - resident) / 1024.0;
    let piped = piped()?;
    let words = format!(
        "{:.0} MB/s beside {:.0}",
        FLOOD_BYTES / 1e6 / took.as_secs_f64(),
        FLOOD_BYTES / 1e6 / piped.as_secs_f64()
    );
    let once = |value: f64| Spread::of(std::iter::once(value));
    let rate = piped.as_secs_f64() / took.as_secs_f64();
    Ok([
        Figure::of("flood-memory", once(moved)),
        Figure::of("flood-rate", once(rate)).noted(words),
    ])
}

fn piped() -> Result<Duration, Error> {
    let began = Instant::now();
    let line = format!("head -c {FLOOD} /dev/zero | cat > /dev/null");
    let mut sh = Command::new("/bin/sh");
    let status = sh.args(["-c", &line]).stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{line}: {status}").into());
    }
    Ok(began.elapsed())
}
