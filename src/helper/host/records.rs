//! The end of a record of logins, packages or kernel messages, of the host or of a container.

use std::io;
use std::path::Path;

use gatewren_base::sys::{FileEnd, InsideRoot, read_kernel_ring};
use gatewren_wire::operations::{
    ContainerAction, ContainerRef, OperationEnd, OperationRefusal, RECORD_BYTES, RecordHeader,
    SystemRecord,
};

use crate::context::operation_context::OperationContext;
use crate::lxc::paths::inside;
use crate::processes::answers::line;
use crate::processes::printing::print;

/// Prints the end of a record of the host: a line of JSON ([`RecordHeader`]), then the bytes.
///
/// No link is followed: on some hosts a group other than root's may write in `/var/log`.
pub async fn host_record(
    context: &mut OperationContext<'_>,
    record: SystemRecord,
) -> Result<OperationEnd, OperationRefusal> {
    print(context.relay, move || {
        if record == SystemRecord::KernelMessages {
            let most = usize::try_from(RECORD_BYTES).unwrap_or(usize::MAX);
            return answer(record, read_kernel_ring(most));
        }
        let root = InsideRoot::open(Path::new("/"));
        let read =
            root.and_then(|root| root.read_end_without_links(record.path(), RECORD_BYTES.into()));
        answer(record, read)
    })
    .await
}

/// Performs an operation on the records of a container.
pub async fn act(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    action: &ContainerAction,
) -> Result<OperationEnd, OperationRefusal> {
    match action {
        ContainerAction::Record { record } => container_record(context, container, *record).await,
        ContainerAction::MissingRecords {} => missing_records(context, container).await,
        _ => Err(OperationRefusal::failed("not an operation on records")),
    }
}

/// Prints the end of a record of a container in the same form. Links are resolved inside the container.
async fn container_record(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    record: SystemRecord,
) -> Result<OperationEnd, OperationRefusal> {
    if record == SystemRecord::KernelMessages {
        return Err(OperationRefusal::failed(
            "a container has no kernel messages of its own",
        ));
    }
    let root = inside(context.helper, container).await?;
    print(context.relay, move || {
        answer(record, root.read_end(record.path(), RECORD_BYTES.into()))
    })
    .await
}

/// Prints which records a container certainly lacks, so that they need not be asked for one by one. One on another mount
/// below its root is not among them.
async fn missing_records(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, OperationRefusal> {
    let root = inside(context.helper, container).await?;
    print(context.relay, move || {
        let records = SystemRecord::OF_CONTAINERS.into_iter();
        let missing = records.filter(|record| root.lacks(record.path()));
        Ok(line(&missing.collect::<Vec<_>>()))
    })
    .await
}

fn answer(record: SystemRecord, read: io::Result<FileEnd>) -> Result<Vec<u8>, OperationRefusal> {
    let (header, bytes) = match read {
        Ok(end) => (
            RecordHeader {
                exists: true,
                size_bytes: end.size_bytes,
                offset: end.offset,
            },
            end.bytes,
        ),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => (
            RecordHeader {
                exists: false,
                size_bytes: 0,
                offset: 0,
            },
            Vec::new(),
        ),
        Err(cause) => {
            let words = format!("cannot read {}: {cause}", record.path());
            return Err(OperationRefusal::failed(words));
        }
    };
    Ok([line(&header), bytes].concat())
}
