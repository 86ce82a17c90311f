//! `container_*`: containers that are kept as snapshots, brought back, copied, made and taken away.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{failure::failed, number::Number};
use crate::backends::{ContainerDetails, ContainerName, Lxc, Snapshot, SnapshotName};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The group, as a table.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    const ID: &[(&str, &str)] = &[("id", "container")];
    Toolset::over(lxc)
        .named("containers")
        .tool("container_snapshot_list", Risk::Read, list)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Snapshots of a container")
        .tool("container_snapshot_create", Risk::Write, keep)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Make a snapshot")
        .tool("container_snapshot_restore", Risk::Disrupt, restore)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Go back to a snapshot")
        .syncs_state()
        .tool("container_snapshot_delete", Risk::Disrupt, forget)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Delete a snapshot")
        .tool("container_rebuild", Risk::Disrupt, rebuild)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Rebuild a container")
        .startos("package.rebuild", ID)
        .syncs_state()
        .tool("container_clone", Risk::Write, clone)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Copy a container")
        .syncs_state()
        .tool("container_create", Risk::Disrupt, create)
        .about(Scope::Container("container"))
        .makes_target()
        .through(HelperClass::LxcManage)
        .titled("Create a container")
        .startos("package.install", ID)
        .leaving_aside(&[("registry", "string"), ("version", "string")])
        .syncs_state()
        .tool("container_destroy", Risk::Disrupt, destroy)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Destroy a container")
        .startos("package.uninstall", ID)
        .syncs_state()
}

/// Lists the snapshots of a container, the oldest first; those that other programs made by other means are not known.
/// `container_snapshot_restore` goes back to one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
}

#[derive(Serialize, JsonSchema)]
struct Snapshots {
    /// Sorted by number.
    snapshots: Vec<Snapshot>,
}

async fn list(lxc: Arc<Lxc>, List { container }: List, cx: Cx) -> Result<Snapshots> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    let snapshots = lxc.snapshots(&container).await.map_err(failed)?;
    Ok(Snapshots { snapshots })
}

/// Keeps a container as it is now, files and settings, as a snapshot, and returns the snapshot's name. The container
/// must be stopped (`container_stop`). It is a whole copy where the storage has nothing better, and takes its time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Keep {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// What it is kept for, in one line.
    comment: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Kept {
    /// Whose.
    container: ContainerName,
    /// The snapshot's name.
    snapshot: SnapshotName,
}

async fn keep(lxc: Arc<Lxc>, Keep { container, comment }: Keep, cx: Cx) -> Result<Kept> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    let snapshot = lxc.snapshot(&container, comment).await.map_err(failed)?;
    Ok(Kept {
        container,
        snapshot,
    })
}

/// Brings a container back to a snapshot and says how it stands: files and settings are as they were then, and what
/// came later is lost. The container must be stopped (`container_rebuild` stops and starts it). Until the copy is
/// whole nothing is changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restore {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// The snapshot's name, as `container_snapshot_list` shows it.
    snapshot: SnapshotName,
}

async fn restore(
    lxc: Arc<Lxc>,
    Restore {
        container,
        snapshot,
    }: Restore,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.restore(&container, snapshot).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Deletes a snapshot of a container, and says so: nothing brings it back. The container itself is left as it is.
/// `container_snapshot_list` names its snapshots.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forget {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// The snapshot's name, as `container_snapshot_list` shows it.
    snapshot: SnapshotName,
}

async fn forget(
    lxc: Arc<Lxc>,
    Forget {
        container,
        snapshot,
    }: Forget,
    cx: Cx,
) -> Result<Snapshots> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.forget(&container, snapshot).await.map_err(failed)?;
    let snapshots = lxc.snapshots(&container).await.map_err(failed)?;
    Ok(Snapshots { snapshots })
}

/// How long a container is asked to end by itself before it is forced to.
type Grace = Number<0, 40, 10>;

/// Brings a container back to a snapshot, the newest if none is named: stops it if it runs, restores its files and
/// settings, starts it again if it ran, and says how it stands. What came after the snapshot is lost. One without
/// snapshots is left as it is: `container_snapshot_create` makes one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rebuild {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// The snapshot's name, as `container_snapshot_list` shows it.
    snapshot: Option<SnapshotName>,
    /// Seconds to wait for an orderly end, at most 40; 0 forces at once.
    #[serde(default)]
    grace_s: Grace,
}

#[derive(Serialize, JsonSchema)]
struct Rebuilt {
    /// What it was brought back to.
    snapshot: SnapshotName,
    #[serde(flatten)]
    details: ContainerDetails,
}

async fn rebuild(lxc: Arc<Lxc>, asked: Rebuild, cx: Cx) -> Result<Rebuilt> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    let (container, grace) = (asked.container, asked.grace_s.seconds());
    let snapshot = lxc.rebuild(&container, asked.snapshot, grace).await;
    Ok(Rebuilt {
        snapshot: snapshot.map_err(failed)?,
        details: lxc.info(&container).await.map_err(failed)?,
    })
}

/// Copies a stopped container under a new name, with hardware addresses and a host name of its own, and says how the
/// copy stands: stopped, until `container_start`. One that runs is refused. What is broken off leaves nothing behind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Clone {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// The copy's name; it must be free.
    new_name: ContainerName,
}

async fn clone(
    lxc: Arc<Lxc>,
    Clone {
        container,
        new_name,
    }: Clone,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.clone_to(&container, &new_name).await.map_err(failed)?;
    lxc.info(&new_name).await.map_err(failed)
}

/// Creates a container from one of the templates that the owner of this box allows; with a name that is not among
/// them the answer says which are. It is stopped then; `container_start` starts it. Many templates fetch what they
/// need from the network, which takes its time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The new container's name; it must be free.
    container: ContainerName,
    /// The template's name.
    template: TemplateName,
}

/// What the owner calls a template: 1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct TemplateName(String);

impl TryFrom<String> for TemplateName {
    type Error = &'static str;

    fn try_from(name: String) -> std::result::Result<Self, &'static str> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let begins = name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        let good = begins && name.len() <= 64 && name.bytes().all(plain);
        good.then_some(Self(name))
            .ok_or("a template is named by letters, digits and . _ -, such as busybox")
    }
}

impl JsonSchema for TemplateName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TemplateName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" })
    }
}

async fn create(
    lxc: Arc<Lxc>,
    Create {
        container,
        template,
    }: Create,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.create(&container, template.0).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Destroys a container with all its files, and says so: nothing brings them back. One that runs, or that has
/// snapshots, is kept unless the call says otherwise. With `soft` it is only stopped and no longer starts with the
/// box. `container_snapshot_list` tells of its snapshots.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Destroy {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// Whether it is stopped and kept instead.
    #[serde(default)]
    soft: bool,
    /// Whether one that runs is stopped for it, at once.
    #[serde(default)]
    force: bool,
    /// Whether its snapshots are deleted too.
    #[serde(default)]
    with_snapshots: bool,
}

#[derive(Serialize, JsonSchema)]
struct Destroyed {
    /// Which.
    container: ContainerName,
    /// Whether it is gone; one that was only stopped is not.
    destroyed: bool,
}

async fn destroy(lxc: Arc<Lxc>, asked: Destroy, cx: Cx) -> Result<Destroyed> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    let container = asked.container;
    if asked.soft {
        let grace = if asked.force {
            0
        } else {
            Grace::default().get()
        };
        let grace = std::time::Duration::from_secs(grace.into());
        lxc.stop(&container, grace).await.map_err(failed)?;
        lxc.set_autostart(&container, false).await.map_err(failed)?;
    } else {
        let destroyed = lxc
            .destroy(&container, asked.force, asked.with_snapshots)
            .await;
        destroyed.map_err(failed)?;
    }
    Ok(Destroyed {
        container,
        destroyed: !asked.soft,
    })
}
