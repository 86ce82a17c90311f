//! Combines the parts: the tables for people and for programs, and the drawings.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::calls::is_own;
use crate::common::Error;
use crate::common::spread::Spread;
use crate::figure::{Curve, Figure, Found};
use crate::rows::{Better, Met, ROWS, Row};
use crate::svg::draw;

/// The name of the files with the tables.
const TABLES: &str = "tables";

/// Reads the parts in a folder and writes the tables and drawings beside it; returns the table for people.
pub fn report(folder: &Path) -> Result<String, Error> {
    let found = parts(&folder.join("parts"))?;
    let about = fs::read_to_string(folder.join("about")).unwrap_or_default();
    let text = markdown(&found, about.trim());
    fs::write(folder.join(TABLES).with_extension("md"), &text)?;
    fs::write(folder.join("short.md"), short(&found, about.trim()))?;
    let tables = serde_json::to_string_pretty(&tables(&found, about.trim()))?;
    fs::write(folder.join(TABLES).with_extension("json"), tables + "\n")?;
    for curve in curves(&found) {
        let file = folder.join(&curve.file).with_extension("svg");
        fs::write(file, draw(curve))?;
    }
    Ok(text)
}

fn parts(folder: &Path) -> Result<Vec<Found>, Error> {
    let mut found: Vec<Found> = Vec::new();
    let files = fs::read_dir(folder).map_err(|cause| format!("{}: {cause}", folder.display()))?;
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            let text = fs::read_to_string(&path)?;
            let part = serde_json::from_str(&text)
                .map_err(|cause| format!("{}: {cause}", path.display()))?;
            found.push(part);
        }
    }
    if found.is_empty() {
        return Err(format!("{}: nothing was measured", folder.display()).into());
    }
    found.sort_by(|one, other| one.part.cmp(&other.part));
    Ok(found)
}

fn curves(found: &[Found]) -> impl Iterator<Item = &Curve> {
    found.iter().flat_map(|part| &part.curves)
}

fn figure<'a>(found: &'a [Found], row: &Row) -> Option<&'a Figure> {
    let mut figures = found.iter().flat_map(|part| &part.figures);
    figures.find(|figure| figure.key == row.key)
}

/// Returns the short table for `goals.md`: one line per row, without notes.
fn short(found: &[Found], about: &str) -> String {
    let mut text = format!(
        "\n{about} {} Other programs took {:.1} cores meanwhile, at most.\n\n| goal | what | ours | gate | target | best peer as it is | best guarded peer |\n| --- | --- | ---: | ---: | ---: | --- | --- |\n",
        machine(found),
        found.iter().map(|part| part.others).fold(0.0, f64::max)
    );
    for row in ROWS {
        let Some((figure, ours)) = figure(found, row).and_then(|f| Some((f, f.ours?))) else {
            continue;
        };
        let mark = |bound: f64| match row.met(figure.ours, bound) {
            Met::Yes => number(bound),
            Met::No | Met::Unknown => format!("{}: missed", number(bound)),
        };
        let [plain, guarded] = best_of_both(row, figure);
        let _ = writeln!(
            text,
            "| {} | {} | {} {} | {} | {} | {plain} | {guarded} |",
            row.goal,
            row.what,
            number(ours.median),
            row.unit,
            mark(row.gate),
            mark(row.target)
        );
    }
    text
}

/// Returns the best of these peers, without gatewren's own engine.
fn best<'a>(row: &Row, peers: &'a [(String, Spread)]) -> Option<(&'a str, Spread)> {
    let others = peers.iter().filter(|(name, _)| !is_own(name));
    let others: Vec<(String, Spread)> = others.cloned().collect();
    let name = &row.best(&others)?.0;
    let (name, spread) = peers.iter().find(|(known, _)| known == name)?;
    Some((name, *spread))
}

/// Returns the cells of the best peer as it is, and of the best guarded one.
fn best_of_both(row: &Row, figure: &Figure) -> [String; 2] {
    [&figure.peers, &figure.guarded].map(|peers| {
        best(row, peers).map_or_else(
            || "-".to_owned(),
            |(name, spread)| format!("{} ({name})", number(spread.median)),
        )
    })
}

fn markdown(found: &[Found], about: &str) -> String {
    let mut text = format!("{about}\n\n{HEAD}");
    for row in ROWS {
        let Some(figure) = figure(found, row) else {
            continue;
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{}", line(row, figure));
    }
    text.push_str(FOOT);
    text.push_str(OTHERS);
    for part in found {
        for figure in &part.figures {
            others(&mut text, figure);
        }
    }
    text.push_str(NOISE);
    for part in found {
        let _ = writeln!(text, "{}", noise(part));
    }
    let _ = writeln!(text, "\n{}", machine(found));
    for curve in curves(found) {
        let _ = writeln!(text, "\n![{}]({}.svg)", curve.title, curve.file);
    }
    text
}

const HEAD: &str = "\
| goal | what | limit | best peer as it is | best guarded peer | ours (quartiles) | gate | target | gate met | target met |
| --- | --- | ---: | --- | --- | ---: | ---: | ---: | --- | --- |\n";

const FOOT: &str = "
`x hyper` and `of hyper` are by a server that is hyper alone with a reply of the same size, right before and right after.
For gatewren, which serves only TLS and keeps its audit, it is hyper over TLS with the same certificate.

A peer has two forms. As it is, it serves plain HTTP, as its documentation shows, and checks no token; its figures are by
plain hyper. Guarded, it does the work of gatewren: TLS 1.3 with the same certificate, a bearer token, and a row about
each request in SQLite (WAL, `synchronous = NORMAL`, groups of 5 ms, as gatewren's rows about calls that only read); its
figures are by hyper over TLS. A guarded peer has no policy, no hash chain and one token. G6 divides calls/s: by the best
guarded peer's, both as a share of hyper's over TLS, and by the best peer's as it is, without hyper.

gatewren is asked `whoami`, the peers `echo`. The limit is what was once measured of the least code that answers rightly.
Medians decide.\n";

const OTHERS: &str = "
## Peers, and what else is to be known

| figure | ours | peers as they are | guarded peers | note |
| --- | ---: | --- | --- | --- |\n";

const NOISE: &str = "
## How quiet the machine was

| part | rounds | seconds a sample | cores that others used | anchor beside itself | load after | took |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";

fn line(row: &Row, figure: &Figure) -> String {
    let unit = if row.unit.is_empty() {
        String::new()
    } else {
        format!(" {}", row.unit)
    };
    let limit = row.limit.map_or_else(|| "-".to_owned(), number);
    let [plain, guarded] = best_of_both(row, figure);
    let ours = figure.ours.map_or_else(
        || format!("not here: {}", figure.note),
        |ours| format!("{}{unit}", words(ours)),
    );
    let mark = |bound: f64| match row.met(figure.ours, bound) {
        Met::Yes => "yes",
        Met::No => "**no**",
        Met::Unknown => "-",
    };
    let sign = match row.better {
        Better::More => ">=",
        Better::Less => "<=",
    };
    format!(
        "| {} | {} | {limit} | {plain} | {guarded} | {ours} | {sign} {} | {sign} {} | {} | {} |",
        row.goal,
        row.what,
        number(row.gate),
        number(row.target),
        mark(row.gate),
        mark(row.target)
    )
}

fn others(text: &mut String, figure: &Figure) {
    let [plain, guarded] = [&figure.peers, &figure.guarded].map(|peers| {
        let peers = peers.iter();
        let peers = peers.map(|(name, spread)| format!("{name}: {}", words(*spread)));
        peers.collect::<Vec<_>>().join("; ")
    });
    let ours = figure.ours.map_or_else(|| "-".to_owned(), words);
    let _ = writeln!(
        text,
        "| {} | {ours} | {plain} | {guarded} | {} |",
        figure.key, figure.note
    );
}

fn noise(part: &Found) -> String {
    let itself = part.noise.map_or_else(
        || "-".to_owned(),
        |noise| format!("{:.1} %", noise.median * 100.0),
    );
    format!(
        "| {} | {} | {} | {:.2} | {itself} | {} | {:.0} s |",
        part.part, part.rounds, part.seconds, part.others, part.load_after, part.took
    )
}

fn machine(found: &[Found]) -> String {
    let first = found.first();
    first.map_or_else(String::new, |part| {
        format!("{}; {}.", part.machine.words(), part.pinning)
    })
}

/// Returns the median, with the quartiles in brackets if they differ.
fn words(spread: Spread) -> String {
    let Spread { low, median, high } = spread;
    if (high - low).abs() < f64::EPSILON {
        return number(median);
    }
    format!("{} ({}-{})", number(median), number(low), number(high))
}

/// Returns a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn named(best: Option<(&str, Spread)>) -> Option<Value> {
    best.map(|(name, spread)| json!({ "name": name, "spread": spread }))
}

fn tables(found: &[Found], about: &str) -> Value {
    let rows: Vec<Value> = ROWS
        .iter()
        .filter_map(|row| {
            let figure = figure(found, row)?;
            Some(json!({
                "goal": row.goal,
                "key": row.key,
                "what": row.what,
                "unit": row.unit,
                "limit": row.limit,
                "best_peer": named(best(row, &figure.peers)),
                "best_guarded_peer": named(best(row, &figure.guarded)),
                "ours": figure.ours,
                "gate": row.gate,
                "target": row.target,
                "gate_met": row.met(figure.ours, row.gate),
                "target_met": row.met(figure.ours, row.target),
                "note": figure.note,
            }))
        })
        .collect();
    json!({ "about": about, "rows": rows, "parts": found })
}
