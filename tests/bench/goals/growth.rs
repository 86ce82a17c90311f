//! W10 and the drawings: how the cost of calls, memory and subscribers grows.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use crate::common::Error;
use crate::common::connection::Connection;
use crate::common::follower::{Follower, fill};
use crate::common::foreign::{Foreign, tick};
use crate::common::load::Sample;
use crate::common::machine::{CpuClock, memory_kib, raise_descriptor_limit};
use crate::common::pair::{Compared, Pair, Triple, compare};
use crate::common::servers::{Directory, Gatewren, Home};
use crate::common::spread::Spread;
use crate::common::wire::{Head, INITIALIZE, INITIALIZED, Question, Wire};
use crate::context::{Context, say};
use crate::documents::{SIZES, Size, size};
use crate::figure::{Curve, Figure, Findings, Line};
use crate::state::TICK;
use crate::{fan_out, reads};

const SESSIONS: [u32; 5] = [1, 10, 100, 1000, 10_000];
const REVISIONS: [u32; 5] = [10, 100, 1000, 10_000, 100_000];
const CONTAINERS: [u32; 4] = [1, 10, 50, 200];
const SUBSCRIBERS: [u32; 4] = [1, 10, 100, 1000];
const DOCUMENTS: [Size; 5] = [
    SIZES[0],
    size("10 kB", "tenth", 10_000),
    SIZES[1],
    size("1 MB", "third", 1_000_000),
    SIZES[2],
];

/// Revisions in one commit: one commit each would only measure the disk.
const AT_ONCE: u32 = 5000;

/// The number of connections of a point.
const CONNECTIONS: u32 = 16;

/// The time to finish the work of earlier steps.
const SETTLING: Duration = Duration::from_secs(2);

/// The length of an idle period.
const REST: Duration = Duration::from_secs(5);

const CALL: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("whoami"),
    params: r#""name":"whoami","arguments":{}"#,
};

const CONTAINER_LIST: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("container_list"),
    params: r#""name":"container_list","arguments":{}"#,
};

/// A point: the quantity, and the cost.
struct Point {
    many: f64,
    cpu: Compared,
    /// Resident memory in MB.
    mb: f64,
}

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    raise_descriptor_limit()?;
    let mut findings = Findings::default();
    sessions(cx, &mut findings).await?;
    revisions(cx, &mut findings).await?;
    containers(cx, &mut findings).await?;
    documents(cx, &mut findings).await?;
    subscribers(cx, &mut findings).await?;
    Ok(findings)
}

/// Measures a call of this question against hyper, for the requested number of rounds.
async fn point(
    cx: &Context,
    ours: &Gatewren,
    question: &Question<'_>,
    many: u32,
) -> Result<Point, Error> {
    let pair = Pair::ours(question, ours, cx.pinning).await?;
    let mut triples: Vec<Triple> = Vec::new();
    for _ in 0..cx.args.common.rounds {
        triples.push(pair.triple(CONNECTIONS, cx.args.common.seconds).await?);
    }
    Ok(Point {
        many: f64::from(many),
        cpu: compare(&triples, |s: &Sample| s.cpu_us),
        mb: memory_kib(ours.pid(), "VmRSS")? * 1024.0 / 1e6,
    })
}

/// Compares the cost of a call on the server with much data and on the one with little, measured in turn. Comparing
/// each with hyper would not work: the machine's speed changes during the run, and not every part of a call changes
/// by the same factor as hyper.
async fn grown(
    cx: &Context,
    question: &Question<'_>,
    servers: [&Gatewren; 2],
) -> Result<Compared, Error> {
    let pair = Pair::grown(question, servers).await?;
    let mut triples: Vec<Triple> = Vec::new();
    // More rounds, because this figure decides; a point of a drawing has fewer.
    for _ in 0..cx.args.common.rounds * 2 {
        triples.push(pair.triple(CONNECTIONS, cx.args.common.seconds).await?);
    }
    Ok(compare(&triples, |s: &Sample| s.cpu_us))
}

/// Returns the figure and the drawings.
fn growth(
    (key, across): (&str, &str),
    grown: &Compared,
    points: &[Point],
) -> Option<(Figure, Vec<Curve>)> {
    let (first, last) = (points.first()?, points.last()?);
    let words = format!(
        "{:.1} us with {:.0}, {:.1} us with {:.0}, in turn",
        grown.anchor.median, first.many, grown.subject.median, last.many
    );
    let figure = Figure::of(format!("growth-{key}"), grown.ratio).noted(words);
    let line = |name: &str, of: &dyn Fn(&Point) -> f64| Line {
        name: name.to_owned(),
        points: points.iter().map(|point| (point.many, of(point))).collect(),
    };
    let curves = vec![
        Curve {
            file: format!("call-by-{key}"),
            title: format!("CPU of a call by {key}"),
            across: across.to_owned(),
            upwards: "us".to_owned(),
            lines: vec![
                line("gatewren", &|point| point.cpu.subject.median),
                line("hyper over TLS", &|point| point.cpu.anchor.median),
            ],
        },
        Curve {
            file: format!("memory-by-{key}"),
            title: format!("Resident memory of the front by {key}"),
            across: across.to_owned(),
            upwards: "MB".to_owned(),
            lines: vec![line("gatewren", &|point| point.mb)],
        },
    ];
    Some((figure, curves))
}

fn add(findings: &mut Findings, grown: Option<(Figure, Vec<Curve>)>) {
    if let Some((figure, curves)) = grown {
        findings.figures.push(figure);
        findings.curves.extend(curves);
    }
}

async fn sessions(cx: &Context, findings: &mut Findings) -> Result<(), Error> {
    let little = Gatewren::start(&cx.args.common, cx.pinning)?;
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    let question = Question {
        wire: Wire::Stateful,
        ..CALL
    };
    let mut connection = ours.address.open().await?;
    let (mut points, mut open) = (Vec::new(), 0);
    for many in SESSIONS {
        say(&format!("{many} sessions"))?;
        while open < many {
            begin(&mut connection, &ours).await?;
            open += 1;
        }
        points.push(point(cx, &ours, &question, many).await?);
        // Each connection of each sample had a session too; they count from now on.
        open += CONNECTIONS * cx.args.common.rounds;
        // An idle connection is closed after a while.
        connection = ours.address.open().await?;
    }
    let grown = grown(cx, &question, [&little, &ours]).await?;
    add(findings, growth(("sessions", "sessions"), &grown, &points));
    Ok(())
}

async fn begin(connection: &mut Connection, ours: &Gatewren) -> Result<(), Error> {
    let head = || {
        Head::new(ours.address.socket()).with("authorization", &format!("Bearer {}", ours.token))
    };
    let reply = connection.exchange(&head().request(INITIALIZE)).await?;
    let session = reply.header("mcp-session-id").map(str::to_owned);
    let session = session.ok_or("initialize gave no session")?;
    let told = head().with("mcp-session-id", &session).request(INITIALIZED);
    let status = connection.exchange(&told).await?.status().to_owned();
    if status != "202" {
        return Err(format!("notifications/initialized: status {status}").into());
    }
    Ok(())
}

async fn revisions(cx: &Context, findings: &mut Findings) -> Result<(), Error> {
    let little = Gatewren::start(&cx.args.common, cx.pinning)?;
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    let first = r#"[{"op":"add","path":"/public/bench","value":{"tick":0}}]"#;
    fill(&little, &[first.to_owned()]).await?;
    let writer = fill(&ours, &[first.to_owned()]).await?;
    let (mut points, mut made) = (Vec::new(), 1);
    for many in REVISIONS {
        say(&format!("{many} revisions"))?;
        let newest = commit_up_to(&writer, &mut made, many)?;
        Follower::new(&ours).await?.reaches(newest).await?;
        sleep(SETTLING).await;
        points.push(point(cx, &ours, &TICK, many).await?);
    }
    let grown = grown(cx, &TICK, [&little, &ours]).await?;
    add(
        findings,
        growth(("revisions", "revisions"), &grown, &points),
    );
    Ok(())
}

fn commit_up_to(writer: &Foreign, made: &mut u32, many: u32) -> Result<i64, Error> {
    let mut newest = 0;
    while *made < many {
        let next = many.min(*made + AT_ONCE);
        let patches = (*made..next).map(|n| tick("tick", u64::from(n)));
        newest = writer.commit_all(patches)?;
        *made = next;
    }
    Ok(newest)
}

/// Measures definitions of stopped containers: LXC lists them, and gatewren inspects them.
async fn containers(cx: &Context, findings: &mut Findings) -> Result<(), Error> {
    let mut points = Vec::new();
    let (mut resting, mut listing) = (Vec::new(), Vec::new());
    let mut servers = Vec::new();
    for many in CONTAINERS {
        say(&format!("{many} containers"))?;
        let (folder, ours) = with_containers(cx, many)?;
        let list = Pair::ours(&CONTAINER_LIST, &ours, cx.pinning).await?;
        sleep(SETTLING).await;
        let triple = list.triple(1, cx.args.common.seconds).await?;
        listing.push((f64::from(many), triple.subject.p50_us / 1e3));
        let cpu = CpuClock::of(ours.pid())?;
        sleep(REST).await;
        let rest = cpu.spent()?.as_secs_f64() * 1e3 / REST.as_secs_f64();
        resting.push((f64::from(many), rest));
        points.push(point(cx, &ours, &CALL, many).await?);
        servers.push((ours, folder));
        // The first server, with little, and the last, with much, are compared at the end.
        if servers.len() > 2 {
            servers.remove(1);
        }
    }
    if let [(little, _), .., (much, _)] = servers.as_slice() {
        let grown = grown(cx, &CALL, [little, much]).await?;
        add(
            findings,
            growth(("containers", "containers"), &grown, &points),
        );
    }
    if let Some((_, ms)) = listing.last() {
        let most = Figure::of("list-200-containers", Spread::of(std::iter::once(*ms)));
        findings.figures.push(most.noted("all stopped"));
    }
    findings.curves.push(curve(
        "list-by-containers",
        "container_list by containers, all stopped: median",
        ("containers", "ms"),
        vec![("gatewren", listing)],
    ));
    findings.curves.push(curve(
        "rest-by-containers",
        "CPU of the front at rest by containers",
        ("containers", "ms/s"),
        vec![("gatewren", resting)],
    ));
    Ok(())
}

fn with_containers(cx: &Context, many: u32) -> Result<(Directory, Gatewren), Error> {
    let folder = Directory::new()?;
    for n in 0..many {
        define(folder.path(), n)?;
    }
    let home = Home::with(&cx.args.common, Some(folder.path()))?;
    let process = home.start(&cx.args.common, cx.pinning)?;
    Ok((folder, Gatewren::of(home, process)?))
}

fn define(folder: &Path, n: u32) -> Result<(), Error> {
    let home = folder.join(format!("box-{n:03}"));
    fs::create_dir_all(home.join("rootfs"))?;
    let name = format!("box-{n:03}");
    let rootfs = home.join("rootfs");
    let config = format!(
        "lxc.uts.name = {name}\nlxc.rootfs.path = dir:{}\nlxc.net.0.type = empty\n",
        rootfs.display()
    );
    Ok(fs::write(home.join("config"), config)?)
}

async fn documents(cx: &Context, findings: &mut Findings) -> Result<(), Error> {
    let (mut ours, mut bare, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for size in DOCUMENTS {
        say(&format!("a document of {}", size.name))?;
        let read = reads::measure(&cx.args.common, size, cx.pinning).await?;
        let bytes = f64::from(u32::try_from(read.bytes)?);
        let [before, after] = read.triple.anchor;
        ours.push((bytes, read.triple.subject.cpu_us));
        bare.push((bytes, f64::midpoint(before.cpu_us, after.cpu_us)));
        peaks.push((bytes, read.peak_kib / 1024.0));
    }
    findings.curves.push(curve(
        "read-by-size",
        "CPU of reading a document by its size",
        ("bytes of the reply", "us"),
        vec![("gatewren", ours), ("hyper over TLS", bare)],
    ));
    findings.curves.push(curve(
        "read-memory-by-size",
        "How far reading moves the front's memory, by size",
        ("bytes of the reply", "MiB"),
        vec![("gatewren", peaks)],
    ));
    Ok(())
}

/// The lines of gatewren and of its anchor.
#[derive(Default)]
struct Sides {
    ours: Vec<(f64, f64)>,
    bare: Vec<(f64, f64)>,
}

impl Sides {
    fn named(self) -> Vec<(&'static str, Vec<(f64, f64)>)> {
        vec![("gatewren", self.ours), ("hyper over TLS", self.bare)]
    }
}

fn median(changes: &[fan_out::Change], figure: fn(&fan_out::Change) -> f64) -> f64 {
    Spread::of(changes.iter().map(figure)).median
}

async fn subscribers(cx: &Context, findings: &mut Findings) -> Result<(), Error> {
    let (mut last, mut cpu) = (Sides::default(), Sides::default());
    for many in SUBSCRIBERS {
        say(&format!("{many} subscribers"))?;
        let row = fan_out::row("growth", many, false, SIZES[0]);
        let measured = fan_out::measure(&cx.args, &row, cx.pinning).await?;
        let many = f64::from(many);
        let ms = |change: &fan_out::Change| change.last_us() / 1e3;
        last.ours.push((many, median(&measured.ours, ms)));
        last.bare.push((many, median(&measured.bare, ms)));
        cpu.ours.push((many, median(&measured.ours, |c| c.cpu_us)));
        cpu.bare.push((many, median(&measured.bare, |c| c.cpu_us)));
    }
    findings.curves.push(curve(
        "told-by-subscribers",
        "Until the last subscriber is told, median",
        ("subscribers", "ms"),
        last.named(),
    ));
    findings.curves.push(curve(
        "told-cpu-by-subscribers",
        "CPU of a notification by subscribers",
        ("subscribers", "us"),
        cpu.named(),
    ));
    Ok(())
}

fn curve(
    file: &str,
    title: &str,
    (across, upwards): (&str, &str),
    lines: Vec<(&str, Vec<(f64, f64)>)>,
) -> Curve {
    let lines = lines.into_iter().map(|(name, points)| Line {
        name: name.to_owned(),
        points,
    });
    Curve {
        file: file.to_owned(),
        title: title.to_owned(),
        across: across.to_owned(),
        upwards: upwards.to_owned(),
        lines: lines.collect(),
    }
}
