//! One connection: its request, its operation, its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::exec::{ContainerName, Decoder, Ending, Frame, Operation, RefusalCode, Request, Stream};
use crate::telemetry::redact_text;

use super::{
    bounds,
    ceilings::{REQUEST_TIME, limits},
    commands::{in_container, on_host, require_root},
    events, files, host_view,
    house::House,
    journal,
    lxc::tool_for,
    network::Network,
    outputs::CHUNK_BYTES,
    power, processes,
    programs::find,
    pump::Pump,
    refusal::Refusal,
    stop::Stop,
    tools, units, updates,
    vitals::{lines, vitals, vitals_and_usage},
};

/// The most of a reference that goes into the log.
const REFERENCE_CHARS: usize = 80;

/// The most of a reason that does: it may repeat what the caller sent.
const REASON_CHARS: usize = 300;

/// Serves one connection to its end.
pub async fn serve_connection(house: Arc<House>, mut stream: UnixStream) {
    let request = match timeout(REQUEST_TIME, read_request(&mut stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(cause)) => return no_request(&house, &cause),
        Err(_) => return no_request(&house, "it did not come in time"),
    };
    let begun = Instant::now();
    let limits = limits(request.limits, &request.operation);
    let stop = Stop::new(limits.timeout_ms, house.shutdown.clone());
    let mut pump = Pump::new(stream, limits.output_bytes, stop);
    pump.say(&Frame::Accepted).await;
    let outcome = match permit(&house, &request.operation) {
        Err(refusal) => Err(refusal),
        Ok(_permit) => perform(&house, &mut pump, &request.operation, limits.processes).await,
    };
    house.strays.sweep();
    log(&house, &request, &outcome, begun);
    let ending = outcome.unwrap_or_else(Ending::from);
    pump.say(&Frame::End(ending)).await;
}

async fn read_request(stream: &mut UnixStream) -> Result<Request, String> {
    let mut decoder = Decoder::default();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        if let Some(request) = decoder.next_request().map_err(|e| e.to_string())? {
            // What follows would be thrown away or taken for hanging up, as it happens to arrive.
            return if decoder.is_empty() {
                Ok(request)
            } else {
                Err("bytes after its request".to_owned())
            };
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
        Operation::Bounds {} => &house.bounds_streams,
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
    most: u32,
) -> Result<Ending, Refusal> {
    // One and the same for the whole operation.
    let policy = house.policy.now();
    if let Some(container) = operation.container()
        && !policy.allows_container(container.as_str())
    {
        // As if it did not exist: the front is not told what it may not see.
        return Err(house.containers.absent(container));
    }
    bounds::check(&policy, operation)?;
    match operation {
        Operation::Ping {} => Ok(Ending::Exited { code: 0 }),
        Operation::Bounds {} => bounds::report(house, pump).await,
        Operation::HostView {}
        | Operation::HostSpace { .. }
        | Operation::HostPrograms { .. }
        | Operation::HostProcesses { .. } => look_at_host(pump, operation).await,
        Operation::HostCommand { command } => on_host(house, pump, command, most).await,
        Operation::ContainerCommand { container, command } => {
            in_container(house, pump, (container, command), most).await
        }
        Operation::ContainerConfig { container } => {
            let path = existing(house, container)?;
            print(pump, move || files::config(&path)).await
        }
        Operation::ContainerOsRelease { container } => os_release(house, pump, container).await,
        Operation::ContainerDisk { container } => disk(house, pump, container).await,
        Operation::ContainerVitals { container } => {
            container_vitals(house, pump, container.as_ref()).await
        }
        Operation::ContainerEvents {} => events::report(house, pump).await,
        Operation::ContainerInfo { container } => info(house, pump, container).await,
        Operation::ContainerStart { container } | Operation::ContainerStop { container, .. } => {
            existing(house, container)?;
            run_tool(house, pump, operation).await
        }
        Operation::ContainerList {} => list(house, pump).await,
        Operation::Restart { plan } => power::schedule(house, pump, "reboot", plan).await,
        Operation::Shutdown { plan } => power::schedule(house, pump, "poweroff", plan).await,
        Operation::CancelShutdown {} => power::cancel(house, pump).await,
        Operation::UpdateCheck {} => updates::check(house, pump).await,
        Operation::HostLog { .. }
        | Operation::ContainerLog { .. }
        | Operation::HostBoots {}
        | Operation::ContainerBoots { .. } => journal::read(house, pump, operation, most).await,
        Operation::UnitChange { .. }
        | Operation::ContainerUnitList { .. }
        | Operation::ContainerUnit { .. }
        | Operation::ContainerUnitChange { .. } => {
            units::perform(house, pump, operation, most).await
        }
    }
}

/// What the helper reads by itself.
async fn look_at_host(pump: &mut Pump, operation: &Operation) -> Result<Ending, Refusal> {
    let operation = operation.clone();
    print(pump, move || match operation {
        Operation::HostSpace { places } => Ok(host_view::spaces(&places)),
        Operation::HostPrograms { sockets } => Ok(host_view::programs(&sockets)),
        Operation::HostProcesses { order, most } => Ok(processes::seen(order, most)),
        _ => Ok(host_view::view()),
    })
    .await
}

/// The configuration file of a container that exists.
fn existing(house: &House, container: &ContainerName) -> Result<PathBuf, Refusal> {
    require_root()?;
    house.containers.check_exists(container)?;
    Ok(house.containers.definitions().file(container))
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
    require_root()?;
    // Directories alone are no containers on a box that cannot run them.
    find("lxc-start")?;
    let (definitions, policy) = (house.containers.definitions().clone(), house.policy.now());
    print(pump, move || {
        let names = definitions.names().map_err(|e| {
            let lxcpath = definitions.lxcpath().display();
            Refusal::failed(format!("the containers in {lxcpath} cannot be listed: {e}"))
        })?;
        let seen = names
            .into_iter()
            .filter(|name| policy.allows_container(name.as_str()));
        let lines = seen.flat_map(|name| [String::from(name), "\n".to_owned()]);
        Ok(lines.collect::<String>().into_bytes())
    })
    .await
}

/// State, first process and addresses, a line each as `lxc-info` prints them.
async fn info(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
) -> Result<Ending, Refusal> {
    let path = existing(house, container)?;
    let standing = match pump.wait(house.containers.ask(container)).await {
        Ok(standing) => standing?,
        Err(why) => return Ok(Ending::Killed { why }),
    };
    let Some(state) = standing.state else {
        if !path.is_file() {
            return Err(house.containers.absent(container));
        }
        // Once more, so that the caller hears what is wrong.
        let operation = Operation::ContainerInfo {
            container: container.clone(),
        };
        return run_tool(house, pump, &operation).await;
    };
    let running = standing.running;
    print(pump, move || {
        let mut lines = vec![format!("State: {state}\n")];
        if let Some(running) = running {
            lines.push(format!("PID: {}\n", running.init));
            let addresses = Network::of(running.init).addresses();
            lines.extend(addresses.iter().map(|address| format!("IP: {address}\n")));
        }
        Ok(lines.concat().into_bytes())
    })
    .await
}

/// What the kernel shows of one container, or of all that are known to run.
async fn container_vitals(
    house: &House,
    pump: &mut Pump,
    container: Option<&ContainerName>,
) -> Result<Ending, Refusal> {
    require_root()?;
    if let Some(name) = container {
        let running = match pump.wait(house.containers.alive(name)).await {
            Ok(alive) => alive?,
            Err(why) => return Ok(Ending::Killed { why }),
        };
        let name = name.clone();
        return print(pump, move || Ok(lines(vitals_and_usage(name, &running)))).await;
    }
    let mut running = house.containers.still_running();
    let policy = house.policy.now();
    running.retain(|(name, _)| policy.allows_container(name.as_str()));
    print(pump, move || {
        let all = running.into_iter();
        Ok(lines(
            all.filter_map(|(name, running)| vitals(name, &running)),
        ))
    })
    .await
}

async fn os_release(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
) -> Result<Ending, Refusal> {
    let root = root(house, container).await?;
    print(pump, move || files::os_release(&root)).await
}

/// What its root file system holds, without what is mounted in it; ends when the caller has no more time.
async fn disk(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
) -> Result<Ending, Refusal> {
    let root = root(house, container).await?;
    let tool = tools::Tool {
        name: "du",
        // The root of a running one is a link.
        args: ["-sx", "--block-size=1", "--"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("{}/.", root.display())])
            .collect(),
    };
    tools::carry(&tool, pump, &house.strays).await
}

/// Where a container's root file system is seen.
async fn root(house: &House, container: &ContainerName) -> Result<PathBuf, Refusal> {
    let config = existing(house, container)?;
    // A running one's root is seen from its init, whatever it is stored on.
    match house.containers.running(container).await {
        Ok(running) => Ok(format!("/proc/{}/root", running.init).into()),
        Err(_) => files::root_of(&config),
    }
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

fn no_request(house: &House, cause: &str) {
    let cause = beginning(cause, REASON_CHARS);
    house
        .complaints
        .say(|unsaid| tracing::warn!(cause, unsaid, "no request"));
}

/// One line an operation: what changes something as information, what only looks for whoever wants to
/// know. No argument and no variable's value is in it: they may be secret.
fn log(house: &House, request: &Request, outcome: &Result<Ending, Refusal>, begun: Instant) {
    // As texts, which are written with everything that would begin a new line or command a terminal escaped.
    let reference = beginning(&request.reference, REFERENCE_CHARS);
    let ending = match outcome {
        Ok(ending) => ending.to_string(),
        Err(refusal) => Ending::from(refusal.clone()).to_string(),
    };
    let ending = beginning(&redact_text(&ending), REASON_CHARS);
    let operation = request.operation.name();
    // Whoever takes a secret for a name does not find it here either.
    let container = request.operation.container();
    let container = container.map(|name| redact_text(name.as_str()));
    let container = container.as_deref();
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let say = |unsaid: Option<u64>| {
        tracing::info!(
            reference,
            operation,
            container,
            ending,
            duration_ms,
            unsaid,
            "operation"
        );
    };
    if request.operation.only_looks() {
        tracing::debug!(
            reference,
            operation,
            container,
            ending,
            duration_ms,
            "operation"
        );
    } else if outcome.as_ref().is_err_and(Refusal::is_of_the_request) {
        house.complaints.say(say);
    } else {
        say(None);
    }
}

fn beginning(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}
