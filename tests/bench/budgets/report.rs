//! The report: a line per path, or a table of its functions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Write as _, stdout};

use crate::args::Args;
use crate::budget::{Budgets, compiler};
use crate::common::Error;
use crate::share::Share;

/// Compares or accepts the counts.
///
/// # Errors
/// When one of the paths has become too expensive; its lines have been printed.
pub fn report(args: &Args, shares: &[Share]) -> Result<String, Error> {
    if args.common.json {
        return Ok(serde_json::to_string(shares)?);
    }
    let mut text = String::new();
    for share in shares {
        table(&mut text, share, args.table)?;
    }
    let compiler = compiler(&args.common.binary)?;
    let mut budgets = Budgets::read(&args.budgets)?;
    if args.accept {
        budgets.accept(shares, compiler.clone(), &args.budgets)?;
    }
    let mut above = 0;
    for share in shares {
        let verdict = budgets.judge(share, &compiler);
        let mark = if verdict.holds { "ok" } else { "not ok" };
        writeln!(text, "{mark} budget of {}", verdict.words)?;
        above += u32::from(!verdict.holds);
    }
    if above == 0 {
        return Ok(text.trim_end().to_owned());
    }
    stdout().write_all(text.as_bytes())?;
    Err(format!("{above} of {} paths are above their budgets", shares.len()).into())
}

/// Adds the functions of a path with the most instructions, and those with the most allocations.
fn table(text: &mut String, share: &Share, rows: usize) -> Result<(), Error> {
    if rows == 0 || share.functions.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "## {}\n\n| instructions | of a call | function |\n| ---: | ---: | --- |",
        share.name
    )?;
    for (own, name) in most(&share.functions, rows) {
        writeln!(
            text,
            "| {own:.0} | {:.1} % | `{name}` |",
            own / share.instructions * 100.0
        )?;
    }
    writeln!(text, "\n| allocations | asked for by |\n| ---: | --- |")?;
    for (count, name) in most(&share.askers, rows) {
        writeln!(text, "| {count:.2} | `{name}` |")?;
    }
    writeln!(text)?;
    Ok(())
}

fn most(of: &BTreeMap<String, f64>, rows: usize) -> Vec<(f64, &str)> {
    let mut all: Vec<(f64, &str)> = of.iter().map(|(name, own)| (*own, name.as_str())).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    all.truncate(rows);
    all
}
