//! `container_*`: snapshots, clones, creation and deletion of containers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    ContainerDetails, ContainerRef, ContainerSnapshot, Lxc, SnapshotName,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    const ID: &[(&str, &str)] = &[("id", "container")];
    Toolset::new(lxc)
        .with_name("containers")
        .tool("container_snapshot_list", Risk::Read, list)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("List container snapshots")
        .tool("container_snapshot_create", Risk::Write, keep)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Create a snapshot")
        .tool("container_snapshot_restore", Risk::Disrupt, restore)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Restore a snapshot")
        .syncs_state()
        .tool("container_snapshot_delete", Risk::Disrupt, forget)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Delete a snapshot")
        .tool("container_rebuild", Risk::Disrupt, rebuild)
        .also_named("container_rollback")
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Rebuild a container")
        .startos("package.rebuild", ID)
        .syncs_state()
        .tool("container_clone", Risk::Write, clone)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Clone a container")
        .syncs_state()
        .tool("container_create", Risk::Disrupt, create)
        .reaches_other_machines()
        .about(Scope::Container("container"))
        .makes_target()
        .through(HelperClass::LxcManage)
        .titled("Create a container")
        .startos("package.install", ID)
        .ignoring_arguments(&[("registry", "string"), ("version", "string")])
        .syncs_state()
        .tool("container_destroy", Risk::Disrupt, destroy)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Destroy a container")
        .startos("package.uninstall", ID)
        .syncs_state()
}

/// List the snapshots of an LXC container, oldest first. `container_snapshot_restore` restores one.
///
/// Snapshots that other programs made by other means are not listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

#[derive(Serialize, JsonSchema)]
struct Snapshots {
    /// The snapshots, sorted by number.
    snapshots: Vec<ContainerSnapshot>,
}

async fn list(lxc: Arc<Lxc>, List { container }: List, cx: Cx) -> Result<Snapshots> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let snapshots = lxc.snapshots(&container).await.map_err(failed)?;
    Ok(Snapshots { snapshots })
}

/// Save an LXC container's files and settings as a snapshot and return its name. A running container is frozen during
/// the copy; one whose root is no directory must be stopped (`container_stop`).
///
/// In a directory it is a full copy, which takes time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Keep {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The purpose of the snapshot, in one line.
    comment: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Kept {
    /// The container's name.
    container: ContainerRef,
    /// The snapshot's name.
    snapshot: SnapshotName,
}

async fn keep(lxc: Arc<Lxc>, Keep { container, comment }: Keep, cx: Cx) -> Result<Kept> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let snapshot = lxc.snapshot(&container, comment).await.map_err(failed)?;
    Ok(Kept {
        container,
        snapshot,
    })
}

/// Restore an LXC container's files and settings from a snapshot and return its details. Later changes are lost. The
/// container must be stopped (`container_rebuild` stops and starts it).
///
/// Nothing is changed until the copy is complete.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restore {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The name, as in `container_snapshot_list`.
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
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.restore(&container, snapshot).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Delete a snapshot of an LXC container and return the remaining ones. This cannot be undone.
/// `container_snapshot_list` lists its snapshots.
///
/// The container itself is unchanged.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forget {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The name, as in `container_snapshot_list`.
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
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.forget(&container, snapshot).await.map_err(failed)?;
    let snapshots = lxc.snapshots(&container).await.map_err(failed)?;
    Ok(Snapshots { snapshots })
}

/// How many seconds a container has to shut down by itself before it is killed.
type Grace = BoundedNumber<0, 40, 10>;

/// Roll an LXC container back to a snapshot, by default the newest, and return its details. Stops a running container,
/// restores files and settings, starts it again. Everything after the snapshot is lost.
///
/// Without a snapshot it fails and changes nothing; `container_snapshot_create` creates one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rebuild {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The name, as in `container_snapshot_list`.
    snapshot: Option<SnapshotName>,
    /// Seconds to wait for a clean shutdown, at most 40; 0 forces it at once.
    #[serde(default)]
    grace_s: Grace,
}

#[derive(Serialize, JsonSchema)]
struct Rebuilt {
    /// The snapshot that was restored.
    snapshot: SnapshotName,
    #[serde(flatten)]
    details: ContainerDetails,
}

async fn rebuild(lxc: Arc<Lxc>, asked: Rebuild, cx: Cx) -> Result<Rebuilt> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let (container, grace) = (asked.container, asked.grace_s.seconds());
    let snapshot = lxc.rebuild(&container, asked.snapshot, grace).await;
    Ok(Rebuilt {
        snapshot: snapshot.map_err(failed)?,
        details: lxc.info(&container).await.map_err(failed)?,
    })
}

/// Clone a stopped LXC container under a new name, with its own hardware addresses and host name, and return its
/// details. The clone is stopped until `container_start`.
///
/// Fails if it is running. An interrupted clone leaves nothing behind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Clone {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The clone's name; it must not be in use.
    #[serde(alias = "new_name")]
    new_container: ContainerRef,
}

async fn clone(
    lxc: Arc<Lxc>,
    Clone {
        container,
        new_container,
    }: Clone,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.clone_to(&container, &new_container)
        .await
        .map_err(failed)?;
    lxc.info(&new_container).await.map_err(failed)
}

/// Create an LXC container from a template that the owner allows. The new container is stopped; `container_start`
/// starts it.
///
/// Many templates download from the network, which takes time. If the template is not allowed, the error lists the
/// allowed ones.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The new container's name; it must not be in use.
    container: ContainerRef,
    /// The template's name.
    template: TemplateName,
}

/// A template's name: 1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("pattern" = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
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
            .ok_or("a template name may have letters, digits and . _ -, such as busybox")
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
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.create(&container, template.0).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Destroy an LXC container with all its files; this cannot be undone. Fails if it is running or has snapshots, unless
/// `force` or `with_snapshots` is set. With `soft` it is only stopped and no longer starts at boot.
/// `container_snapshot_list` lists its snapshots.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Destroy {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// Only stop it and turn autostart off; the container is kept.
    #[serde(default)]
    soft: bool,
    /// Stop it at once if it is running.
    #[serde(default)]
    force: bool,
    /// Also delete its snapshots.
    #[serde(default)]
    with_snapshots: bool,
}

#[derive(Serialize, JsonSchema)]
struct Destroyed {
    /// The container's name.
    container: ContainerRef,
    /// Whether it was destroyed; false if it was only stopped.
    destroyed: bool,
}

async fn destroy(lxc: Arc<Lxc>, asked: Destroy, cx: Cx) -> Result<Destroyed> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
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
