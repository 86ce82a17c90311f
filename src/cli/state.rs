//! `gatewren state`: read and change the document that describes the box.

use std::io::{self, Read as _};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::{place::Place, runtime, say::conclude};
use crate::state::{Actor, Author, Patch, Pointer, Retention, State};

/// Read and change the document that describes the box.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print one JSON object with the revision
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print what stands at a JSON Pointer
    Get {
        /// Where, such as /public/packageData; everything when absent
        #[arg(default_value = "")]
        pointer: String,
    },
    /// Apply a JSON Patch (RFC 6902: add, remove, replace, test) from standard input as one revision
    Patch {
        /// The program on whose behalf; the owner when absent
        #[arg(long = "as", value_name = "PROGRAM")]
        program: Option<String>,
        /// What led to it, for those who read the log
        #[arg(long, value_name = "TEXT")]
        cause: Option<String>,
    },
}

/// A larger patch is refused by the document anyway.
const MAX_PATCH_BYTES: u64 = 8 << 20;

/// Runs the command; 1 when it could not be done.
pub fn run(args: &Args) -> ExitCode {
    conclude(act(args))
}

fn act(args: &Args) -> Result<String, String> {
    let state = State::open_keeping(&args.place.file("state.db")?, Retention::default())
        .map_err(|e| e.to_string())?;
    match &args.what {
        What::Get { pointer } => get(&state, pointer, args.json),
        What::Patch { program, cause } => {
            let actor = program.clone().map_or(Actor::Owner, Actor::Local);
            let author = cause.iter().fold(Author::from(actor), Author::because);
            let runtime = runtime::build().map_err(|e| e.to_string())?;
            let revision = runtime
                .block_on(state.apply(&author, read_patch()?))
                .map_err(|e| e.to_string())?;
            Ok(if args.json {
                json!({ "revision": revision, "database": state.database_id() }).to_string()
            } else {
                format!("the state is at revision {revision}")
            })
        }
    }
}

fn get(state: &State, pointer: &str, json: bool) -> Result<String, String> {
    let pointer = Pointer::parse(pointer).map_err(|e| e.to_string())?;
    let document = state.document();
    let value = pointer.get(&document.root).ok_or_else(|| {
        format!(
            "there is nothing at {pointer} in {}",
            state.path().display()
        )
    })?;
    Ok(if json {
        json!({ "revision": document.revision, "database": state.database_id(), "value": value })
            .to_string()
    } else {
        serde_json::to_string_pretty(value).map_err(|e| e.to_string())?
    })
}

fn read_patch() -> Result<Patch, String> {
    let mut text = String::new();
    let read = io::stdin().take(MAX_PATCH_BYTES).read_to_string(&mut text);
    read.map_err(|cause| format!("standard input: {cause}"))?;
    Patch::parse(&text).map_err(|error| error.to_string())
}
