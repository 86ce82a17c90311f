//! What a container has to tell of itself: its journal, its console, and what LXC says of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::exec::{Command, ContainerName, Ending, Excerpt, LogFile, Program};

use super::{
    answers::line, commands::in_container, files, house::House, places::existing, printing::print,
    pump::Pump, refusal::Refusal,
};

/// The most of a log that one answer has; more is cut.
const MOST_BYTES: u32 = 256 * 1024;

/// The most lines of a journal that one answer has; more is cut.
const MOST_LINES: u32 = 5000;

/// The longest cursor; journald's have some 140 bytes.
const CURSOR_BYTES: usize = 512;

/// Where LXC writes its logs for containers in its usual place.
const USUAL: (&str, &str) = ("/var/lib/lxc", "/var/log/lxc");

/// Prints a part of a log.
pub async fn log(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
    (log, offset, bytes): (LogFile, Option<u64>, u32),
) -> Result<Ending, Refusal> {
    let config = existing(house, container)?;
    let (lxcpath, name) = (house.containers.lxcpath().to_owned(), container.clone());
    print(pump, move || {
        let path = match log {
            LogFile::Console => files::value(&config, "lxc.console.logfile").map(PathBuf::from),
            LogFile::Lxc => lxc_log(&config, &lxcpath, &name),
        };
        let path = path.ok_or_else(|| none(log, &name))?;
        match excerpt(&path, offset, bytes.min(MOST_BYTES)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(none(log, &name)),
            read => read.map_err(|e| Refusal::failed(format!("the log cannot be read: {e}"))),
        }
    })
    .await
}

/// Has the container's own `journalctl` print its last lines.
pub async fn journal(
    house: &House,
    pump: &mut Pump,
    (container, (lines, cursor)): (&ContainerName, (u32, Option<&str>)),
    processes: u32,
) -> Result<Ending, Refusal> {
    let good = |c: &str| c.len() <= CURSOR_BYTES && c.bytes().all(|b| b.is_ascii_graphic());
    if !cursor.is_none_or(good) {
        let words = "a cursor is what container_logs answered as such, and nothing else";
        return Err(Refusal::bad_command(words));
    }
    let lines = format!("--lines={}", lines.min(MOST_LINES));
    let fixed = [
        "journalctl",
        "--no-pager",
        "--quiet",
        "--output=short-iso",
        "--show-cursor",
    ];
    let argv = fixed.into_iter().map(str::to_owned).chain([lines]);
    let after = cursor.map(|cursor| format!("--after-cursor={cursor}"));
    let command = Command {
        program: Program::Argv(argv.chain(after).collect()),
        user: None,
        cwd: Some("/".to_owned()),
        env: BTreeMap::new(),
    };
    in_container(house, pump, (container, &command), processes).await
}

/// The first of the places where LXC may write, as its definition and LXC have them, that is there.
fn lxc_log(config: &Path, lxcpath: &Path, name: &ContainerName) -> Option<PathBuf> {
    let file = format!("{name}.log");
    let named = files::value(config, "lxc.log.file").map(PathBuf::from);
    let beside = lxcpath.join(name.as_str()).join(&file);
    let (usual, logs) = USUAL;
    let apart = (lxcpath == Path::new(usual)).then(|| Path::new(logs).join(&file));
    let places = named.into_iter().chain(apart).chain([beside]);
    places.into_iter().find(|path| path.is_file())
}

fn excerpt(path: &Path, offset: Option<u64>, bytes: u32) -> io::Result<Vec<u8>> {
    // It is asked before it is opened: to open a device does things.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let size_bytes = file.metadata()?.len();
    let offset = offset.unwrap_or_else(|| size_bytes.saturating_sub(bytes.into()));
    file.seek(SeekFrom::Start(offset))?;
    let mut out = line(&Excerpt { size_bytes, offset });
    file.take(bytes.into()).read_to_end(&mut out)?;
    Ok(out)
}

fn none(log: LogFile, name: &ContainerName) -> Refusal {
    Refusal::bad_command(match log {
        LogFile::Console => format!(
            "the console of '{name}' is not kept; lxc.console.logfile in its definition says where to"
        ),
        LogFile::Lxc => format!("LXC has written nothing of '{name}' so far"),
    })
}
