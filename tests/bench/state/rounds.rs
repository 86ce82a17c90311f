//! The method: everything in turn, repeatedly, with fresh servers and files each time.

use std::io::{Write as _, stderr};

use crate::args::Args;
use crate::common::Error;
use crate::common::machine::{Machine, Pinning, load};
use crate::documents::{SIZES, Size};
use crate::report::Report;
use crate::{commits, fan_out, reads, sys};

/// Measures all rows whose names match.
pub async fn measure(args: &Args) -> Result<Report, Error> {
    let common = &args.common;
    // Two thousand streams, each with a socket.
    sys::raise_descriptor_limit();
    let mut report = Report::new(Machine::look(), Pinning::begin(), args);
    let wanted = |name: &str| name.contains(&common.rows);
    for round in 1..=common.rounds {
        let of = common.rounds;
        writeln!(stderr(), "round {round} of {of}, load {}", load())?;
        for size in SIZES
            .into_iter()
            .filter(|size| wanted(&commits_name(*size)))
        {
            let measured = commits::measure(common, size, report.pinning).await?;
            report.commits.add(commits_name(size), measured);
        }
        for size in SIZES.into_iter().filter(|size| wanted(&reads_name(*size))) {
            let measured = reads::measure(common, size, report.pinning).await?;
            report.reads.add(reads_name(size), measured);
        }
        for row in fan_out::ROWS.iter().filter(|row| wanted(row.name)) {
            let measured = fan_out::measure(args, row, report.pinning).await?;
            report.fan_out.add(row.name.to_owned(), measured);
        }
    }
    report.load_after = load();
    Ok(report)
}

fn commits_name(size: Size) -> String {
    format!("commit, document of {}", size.name)
}

fn reads_name(size: Size) -> String {
    format!("read of {}", size.name)
}
