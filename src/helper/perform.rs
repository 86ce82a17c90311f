//! One connection: its request, its operation, its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::exec::{ContainerName, Decoder, Ending, Frame, Operation, RefusalCode, Request, Stream};

use super::{
    bounds,
    ceilings::{MAX_EVENT_STREAMS, REQUEST_TIME, limits},
    commands::{in_container, on_host, require_root},
    files,
    house::House,
    lxc::{end_monitor_daemon, tool_for},
    outputs::CHUNK_BYTES,
    pump::Pump,
    refusal::Refusal,
    stop::Stop,
    tools,
};

/// The most of a reference that goes into the log.
const REFERENCE_CHARS: usize = 80;

/// Serves one connection to its end.
pub async fn serve_connection(house: Arc<House>, mut stream: UnixStream) {
    let request = match timeout(REQUEST_TIME, read_request(&mut stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(cause)) => return tracing::warn!(cause, "no request"),
        Err(_) => return tracing::warn!("no request in time"),
    };
    let begun = Instant::now();
    let limits = limits(request.limits, &request.operation);
    let stop = Stop::new(limits.timeout_ms, house.shutdown.clone());
    let mut pump = Pump::new(stream, limits.output_bytes, stop);
    pump.say(&Frame::Accepted).await;
    let ending = match permit(&house, &request.operation) {
        Err(refusal) => refusal.into(),
        Ok(_permit) => perform(&house, &mut pump, &request.operation, limits.processes)
            .await
            .unwrap_or_else(Ending::from),
    };
    house.strays.sweep();
    log(&request, &ending, begun);
    pump.say(&Frame::End(ending)).await;
}

async fn read_request(stream: &mut UnixStream) -> Result<Request, String> {
    let mut decoder = Decoder::default();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        if let Some(request) = decoder.next_request().map_err(|e| e.to_string())? {
            return Ok(request);
        }
        match stream.read(&mut bytes).await.map_err(|e| e.to_string())? {
            0 => return Err("closed before its request".to_owned()),
            n => decoder.push(bytes.get(..n).unwrap_or_default()),
        }
    }
}

fn permit<'a>(house: &'a House, operation: &Operation) -> Result<SemaphorePermit<'a>, Refusal> {
    let permits = match operation {
        Operation::ContainerEvents {} => &house.event_streams,
        _ => &house.operations,
    };
    permits.try_acquire().map_err(|_| {
        let message = "the helper is running as many operations as it may; try again in a moment";
        Refusal::new(RefusalCode::Busy, message)
    })
}

async fn perform(
    house: &Arc<House>,
    pump: &mut Pump,
    operation: &Operation,
    processes: u32,
) -> Result<Ending, Refusal> {
    if let Some(container) = operation.container()
        && !house.policy.allows_container(container.as_str())
    {
        // As if it did not exist: the front is not told what it may not see.
        return Err(house.containers.absent(container));
    }
    bounds::check(&house.policy, operation)?;
    match operation {
        Operation::Ping {} => Ok(Ending::Exited { code: 0 }),
        Operation::HostCommand { command } => on_host(house, pump, command, processes).await,
        Operation::ContainerCommand { container, command } => {
            in_container(house, pump, (container, command), processes).await
        }
        Operation::ContainerConfig { container } => {
            let path = existing(house, container)?;
            print(pump, move || files::config(&path)).await
        }
        Operation::ContainerOsRelease { container } => os_release(house, pump, container).await,
        Operation::ContainerEvents {} => events(house, pump).await,
        Operation::ContainerInfo { container }
        | Operation::ContainerStart { container }
        | Operation::ContainerStop { container, .. } => {
            existing(house, container)?;
            run_tool(house, pump, operation).await
        }
        Operation::ContainerList {} => list(house, pump).await,
    }
}

/// The configuration file of a container that exists.
fn existing(house: &House, container: &ContainerName) -> Result<PathBuf, Refusal> {
    require_root()?;
    house.containers.check_exists(container)?;
    Ok(house.containers.config(container))
}

async fn run_tool(
    house: &House,
    pump: &mut Pump,
    operation: &Operation,
) -> Result<Ending, Refusal> {
    require_root()?;
    let tool = tool_for(operation, house.containers.lxcpath());
    let tool = tool.ok_or_else(|| Refusal::failed("no tool does this"))?;
    tools::carry(&tool, pump, &house.strays).await
}

/// The names of the containers that may be seen.
async fn list(house: &House, pump: &mut Pump) -> Result<Ending, Refusal> {
    if bounds::sees_all(&house.policy) {
        return run_tool(house, pump, &Operation::ContainerList {}).await;
    }
    require_root()?;
    let tool = tool_for(&Operation::ContainerList {}, house.containers.lxcpath());
    let tool = tool.ok_or_else(|| Refusal::failed("no tool does this"))?;
    let names = tools::output(&tool, &house.strays).await?;
    let seen = bounds::visible(&house.policy, names.as_bytes());
    print(pump, move || Ok(seen)).await
}

/// A line for each change of state, until the caller hangs up. lxc-monitor leaves a daemon behind, which
/// would keep the directory busy for half a minute; the last stream to end takes it along, if it is ours.
async fn events(house: &House, pump: &mut Pump) -> Result<Ending, Refusal> {
    if !bounds::sees_all(&house.policy) {
        let message = "events name every container, and the owner lets only some be seen here";
        return Err(Refusal::new(RefusalCode::Forbidden, message));
    }
    let outcome = run_tool(house, pump, &Operation::ContainerEvents {}).await;
    let last = house.event_streams.available_permits() + 1 == MAX_EVENT_STREAMS;
    if last && house.strays.has_monitor_daemon() {
        let tool = end_monitor_daemon(house.containers.lxcpath());
        if tools::output(&tool, &house.strays).await.is_err() {
            tracing::debug!("lxc-monitord goes by itself");
        }
    }
    outcome
}

async fn os_release(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
) -> Result<Ending, Refusal> {
    let config = existing(house, container)?;
    // A running one's root is seen from its init, whatever it is stored on.
    let root = match house.containers.running(container).await {
        Ok(running) => format!("/proc/{}/root", running.init).into(),
        Err(_) => files::root_of(&config)?,
    };
    print(pump, move || files::os_release(&root)).await
}

/// Reads on a thread of its own, since a disk may not answer, and prints what was read.
async fn print(
    pump: &mut Pump,
    read: impl FnOnce() -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Result<Ending, Refusal> {
    let read = tokio::task::spawn_blocking(read);
    let bytes = match pump.wait(read).await {
        Ok(Ok(bytes)) => bytes?,
        Ok(Err(cause)) => return Err(Refusal::failed(format!("reading failed: {cause}"))),
        Err(why) => return Ok(Ending::Killed { why }),
    };
    for chunk in bytes.chunks(CHUNK_BYTES) {
        pump.say(&Frame::Output(Stream::Stdout, chunk.to_vec()))
            .await;
    }
    Ok(Ending::Exited { code: 0 })
}

/// One line an operation: what changes something as information, what only looks for whoever wants to
/// know. No argument and no variable's value is in it: they may be secret.
fn log(request: &Request, ending: &Ending, begun: Instant) {
    let reference: String = request.reference.chars().take(REFERENCE_CHARS).collect();
    let reference = reference.escape_debug().to_string();
    let operation = request.operation.name();
    let container = request.operation.container().map(ContainerName::as_str);
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    if request.operation.only_looks() {
        tracing::debug!(reference, operation, container, %ending, duration_ms, "operation");
    } else {
        tracing::info!(reference, operation, container, %ending, duration_ms, "operation");
    }
}
