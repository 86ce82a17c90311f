//! The owner's pages, as the demo fills them: the instructions of a page in all threads of the server.

use std::process::Stdio;

use serde::Deserialize;

use crate::args::Args;
use crate::common::Error;
use crate::common::connection::Address;
use crate::common::machine::Pinning;
use crate::common::owner::Owner;
use crate::common::servers::{Directory, Running, socket};
use crate::counter::Grind;
use crate::profile::Profile;
use crate::share::Share;

/// The pages that an owner opens every day.
const PAGES: [(&str, &str); 6] = [
    ("Home", "/owner/home"),
    ("Inbox", "/owner/inbox"),
    ("Containers", "/owner/containers"),
    ("one container", "/owner/containers/jellyfin"),
    ("Agents", "/owner/agents"),
    ("Activity", "/owner/activity"),
];

/// The number of batches of each page, after one that fills caches; the cheapest counts.
const BATCHES: u32 = 6;

/// Requests of a batch.
const REQUESTS: u32 = 4;

/// The output of `try --demo --json`.
#[derive(Deserialize)]
struct Demo {
    url: String,
    ca: std::path::PathBuf,
    owner_code: String,
}

/// Counts every page.
pub async fn count(args: &Args, pinning: Pinning) -> Result<Vec<Share>, Error> {
    let (counts, directory) = (Directory::new()?, Directory::new()?);
    let mut command = Grind::command(pinning, &counts);
    command
        .arg(&args.common.binary)
        .args(["try", "--demo", "--json", "--listen", "127.0.0.1:0"])
        .args(["--log", &args.common.log, "--dir"])
        .arg(directory.path())
        .stdout(Stdio::piped());
    let mut process = Running::start(command)?;
    let demo: Demo = serde_json::from_str(&process.first_line()?)?;
    let grind = Grind::begin(process.pid(), counts)?;
    let address = Address::tls(socket(&demo.url)?, &demo.ca)?;
    let owner = Owner::sign_in(&address, &demo.owner_code).await?;
    let mut shares = Vec::new();
    for (name, path) in PAGES {
        shares.push(page(&grind, &owner, name, path).await?);
    }
    Ok(shares)
}

async fn page(grind: &Grind, owner: &Owner, name: &str, path: &str) -> Result<Share, Error> {
    let request = owner.request(path);
    let mut connection = owner.address().open().await?;
    let mut least: Option<Profile> = None;
    for n in 0..=BATCHES {
        grind.reset()?;
        for _ in 0..REQUESTS {
            let status = connection.exchange(request.as_bytes()).await?.status();
            if status != "200" {
                return Err(format!("{path} is answered with {status}").into());
            }
        }
        let counted = grind.take()?;
        let mut profile = counted.front;
        profile.add(&counted.behind);
        let is_less = |least: &Profile| profile.instructions < least.instructions;
        if n > 0 && least.as_ref().is_none_or(is_less) {
            least = Some(profile);
        }
    }
    let name = format!("the page {name} of the demo");
    Ok(Share::of_page(&name, &least.unwrap_or_default(), REQUESTS))
}
