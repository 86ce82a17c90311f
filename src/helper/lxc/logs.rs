//! A container's logs in files of the host: its console log and LXC's own log.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use gatewren_wire::operations::{
    ContainerRef, FileExcerpt, LogFile, OperationEnd, OperationRefusal,
};

use super::config_files;
use super::paths::existing;
use crate::context::operation_context::OperationContext;
use crate::processes::answers::line;
use crate::processes::printing::print;

/// The most bytes of a log in one response; the rest is cut off.
const MOST_BYTES: u32 = 256 * 1024;

/// Where LXC writes its logs for containers in its default lxcpath.
const USUAL: (&str, &str) = ("/var/lib/lxc", "/var/log/lxc");

/// Prints a part of a log.
pub async fn log(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    log: LogFile,
    offset: Option<u64>,
    bytes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    let config = existing(helper, container)?;
    let (lxcpath, name) = (helper.containers.lxcpath().to_owned(), container.clone());
    print(context.relay, move || {
        let path = match log {
            LogFile::Console => {
                config_files::value(&config, "lxc.console.logfile").map(PathBuf::from)
            }
            LogFile::Lxc => lxc_log(&config, &lxcpath, &name),
        };
        let path = path.ok_or_else(|| absence_refusal(log, &name))?;
        match excerpt(&path, offset, bytes.min(MOST_BYTES)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(absence_refusal(log, &name)),
            read => {
                read.map_err(|e| OperationRefusal::failed(format!("the log cannot be read: {e}")))
            }
        }
    })
    .await
}

/// Returns the first existing file among the paths that LXC may log to, by the definition and LXC's defaults.
pub fn lxc_log(config: &Path, lxcpath: &Path, name: &ContainerRef) -> Option<PathBuf> {
    let file = format!("{name}.log");
    let named = config_files::value(config, "lxc.log.file").map(PathBuf::from);
    let beside = lxcpath.join(name.as_str()).join(&file);
    let (usual, logs) = USUAL;
    let apart = (lxcpath == Path::new(usual)).then(|| Path::new(logs).join(&file));
    let places = named.into_iter().chain(apart).chain([beside]);
    places.into_iter().find(|path| path.is_file())
}

fn excerpt(path: &Path, offset: Option<u64>, bytes: u32) -> io::Result<Vec<u8>> {
    // Checked before opening: opening a device has side effects.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let size_bytes = file.metadata()?.len();
    let offset = offset.unwrap_or_else(|| size_bytes.saturating_sub(bytes.into()));
    file.seek(SeekFrom::Start(offset))?;
    let mut out = line(&FileExcerpt { size_bytes, offset });
    file.take(bytes.into()).read_to_end(&mut out)?;
    Ok(out)
}

fn absence_refusal(log: LogFile, name: &ContainerRef) -> OperationRefusal {
    OperationRefusal::bad_command(match log {
        LogFile::Console => format!(
            "the console of '{name}' is not logged; lxc.console.logfile in its definition sets the file"
        ),
        LogFile::Lxc => format!("LXC has not written a log of '{name}' yet"),
    })
}
