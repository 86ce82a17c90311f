//! Checks the helper, the container runtimes that it serves, and which containers count as the host.

use std::fmt::Write as _;

use super::finding::Finding;
use gatewren_base::config::{Reach, RuntimeKind};
use gatewren_host::backends::{
    BackendError, ContainerDetails, ContainerRef, EngineDescription, Lxc, RuntimeReport,
};
use gatewren_host::helper_client::HelperClient;

/// The reference in the helper's log.
const REFERENCE: &str = "gatewren doctor";

/// The most containers with rights over the host that have a finding of their own; the others are counted.
const MAX_NAMED: usize = 10;

/// Checks through this helper; also returns the containers that were found.
pub async fn look(helper: &HelperClient) -> (Vec<Finding>, Vec<ContainerDetails>) {
    let lxc = Lxc::new(helper.clone()).view_for(&Reach::everything(), REFERENCE);
    let reports = match lxc.runtimes().await {
        Ok(reports) => reports,
        Err(cause) => return (vec![helper_problem("helper", &cause)], Vec::new()),
    };
    let mut found = vec![Finding::good("helper", "it answers")];
    found.extend(
        reports
            .iter()
            .filter_map(|one| check_runtime(one, &reports)),
    );
    // LXC is served by default: a host without any runtime has nothing to list.
    if !reports.iter().any(|one| one.is_served && one.is_here) {
        return (found, Vec::new());
    }
    let containers = match lxc.all().await {
        Ok(containers) => containers,
        Err(cause) => {
            found.push(helper_problem("containers", &cause));
            Vec::new()
        }
    };
    found.extend(find_host_rights(&containers));
    (found, containers)
}

/// The finding for an error of the helper.
pub fn helper_problem(check: &'static str, cause: &BackendError) -> Finding {
    let seen = cause.message.clone();
    let remedy = cause.hint.clone();
    let remedy = remedy.unwrap_or_else(|| "systemctl status gatewren-helper.socket".to_owned());
    Finding::problem(check, seen, remedy)
}

/// The finding for one runtime. `None` for LXC that works, which another check is about, and for an absent runtime that
/// is not served.
fn check_runtime(report: &RuntimeReport, all: &[RuntimeReport]) -> Option<Finding> {
    if let Some(user) = &report.user {
        return Some(check_user(report, user));
    }
    let (kind, check) = (report.runtime, report.runtime.word());
    if kind == RuntimeKind::DockerInLxc {
        return check_inner(report, all);
    }
    let (title, socket) = (kind.title(), report.socket.as_deref().unwrap_or_default());
    if !report.is_served {
        let seen = match kind {
            RuntimeKind::Lxc => "LXC is installed, and its containers are not served".to_owned(),
            _ => {
                format!("the socket {socket} exists, and the containers of {title} are not served")
            }
        };
        return report
            .is_here
            .then(|| Finding::skipped(check, seen).with(serving_hint(kind, all)));
    }
    if let Some(engine) = &report.engine {
        return Some(check_engine(title, check, socket, engine));
    }
    let error = report.error.as_ref()?;
    if kind == RuntimeKind::Lxc {
        // LXC is served by default, so a host without it needs no change.
        return report
            .is_here
            .then(|| Finding::problem(check, error, "journalctl -u gatewren-helper -n 30"));
    }
    let unit = match kind {
        RuntimeKind::Podman => "podman.socket",
        _ => "docker.socket",
    };
    Some(if report.is_here {
        let remedy = format!(
            "systemctl status {check} {unit}; root must own {socket} and its directory, and only root may write to \
             that directory"
        );
        Finding::problem(check, error, remedy)
    } else {
        let seen = format!("{title} is served, and its socket {socket} does not exist");
        let remedy = format!(
            "systemctl enable --now {unit}; or set {check}_socket, or remove {check:?} from runtimes, in helper.toml"
        );
        Finding::problem(check, seen, remedy)
    })
}

/// The finding for the Podman of a user.
fn check_user(report: &RuntimeReport, user: &str) -> Finding {
    const CHECK: &str = "podman of a user";
    let socket = report.socket.as_deref().unwrap_or_default();
    if !report.is_served {
        let seen =
            format!("the socket {socket} exists, and the containers of user {user} are not served");
        let remedy = format!("podman_users = [{user:?}] in helper.toml, if you want to serve them");
        return Finding::skipped(CHECK, seen).with(remedy);
    }
    if let Some(engine) = &report.engine {
        let seen = format!(
            "Podman {} of user {user} answers at {socket}",
            engine.version
        );
        if engine.cgroup_driver == "systemd" {
            return Finding::good(CHECK, seen);
        }
        let seen =
            format!("{seen}; commands cannot run in its containers without systemd of the user");
        return Finding::warning(
            CHECK,
            seen,
            format!("loginctl enable-linger {user}; then start the containers again"),
        );
    }
    let error = report.error.clone();
    let seen = error.unwrap_or_else(|| format!("the Podman of user {user} does not answer"));
    let remedy = format!(
        "loginctl enable-linger {user}; systemctl --user --machine={user}@ enable --now podman.socket; or remove \
         {user:?} from podman_users in helper.toml"
    );
    Finding::problem(CHECK, seen, remedy)
}

/// The finding for Docker inside LXC; `None` if no running container of LXC has it.
fn check_inner(report: &RuntimeReport, all: &[RuntimeReport]) -> Option<Finding> {
    let check = report.runtime.word();
    let named: Vec<&str> = report.places.iter().map(ContainerRef::as_str).collect();
    let mut places = named
        .iter()
        .take(MAX_NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if named.len() > MAX_NAMED {
        let _ = write!(places, " and {} more", named.len() - MAX_NAMED);
    }
    if !report.is_served {
        let seen = format!("containers of LXC have a Docker inside, which is not served: {places}");
        return report
            .is_here
            .then(|| Finding::skipped(check, seen).with(serving_hint(report.runtime, all)));
    }
    if let Some(error) = &report.error {
        let remedy = "systemctl status docker, inside that container of LXC";
        return Some(Finding::problem(check, error, remedy));
    }
    let seen = format!("Docker answers inside these containers of LXC: {places}");
    report.is_here.then(|| Finding::good(check, seen))
}

/// The finding for an engine that answers.
fn check_engine(
    title: &str,
    check: &'static str,
    socket: &str,
    engine: &EngineDescription,
) -> Finding {
    let seen = format!(
        "{title} {} answers at {socket}: API {}, cgroups version {} by {}, runtime {}",
        engine.version,
        engine.api_version,
        engine.cgroup_version,
        engine.cgroup_driver,
        engine.oci_runtime
    );
    if engine.is_rootless {
        let seen =
            format!("{seen}; it runs without root, so commands cannot run in its containers");
        let remedy = "use the socket of the service that root runs, or podman_users in helper.toml for a user's Podman";
        return Finding::warning(check, seen, remedy);
    }
    if engine.cgroup_version == "1" {
        let seen = format!(
            "{seen}; without version 2 only the reaper kills what a command in a container started"
        );
        let remedy = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line";
        return Finding::warning(check, seen, remedy);
    }
    Finding::good(check, seen)
}

/// The command that serves one more runtime.
fn serving_hint(kind: RuntimeKind, all: &[RuntimeReport]) -> String {
    let served = all
        .iter()
        .filter(|one| one.user.is_none())
        .filter(|one| one.is_served || one.runtime == kind || kind.needs() == Some(one.runtime));
    let options: Vec<String> = served
        .map(|one| format!("--runtime {}", one.runtime))
        .collect();
    format!(
        "gatewren init --yes {}, if you want to serve them",
        options.join(" ")
    )
}

/// A warning for each container in which a command has the rights of the host's root.
fn find_host_rights(containers: &[ContainerDetails]) -> Vec<Finding> {
    const CHECK: &str = "host rights";
    let all = containers.iter().filter_map(|container| {
        let rights = &container.engine.as_ref()?.host_rights;
        (!rights.is_empty()).then(|| (&container.name, rights.join("; ")))
    });
    let all: Vec<_> = all.collect();
    let named = all.iter().take(MAX_NAMED).map(|(name, rights)| {
        let seen =
            format!("{name} counts as the host, so commands in it need host_shell: {rights}");
        Finding::warning(
            CHECK,
            seen,
            "create it again without these rights if it does not need them",
        )
    });
    let mut found: Vec<Finding> = named.collect();
    if all.len() > MAX_NAMED {
        let seen = format!(
            "{} more containers count as the host",
            all.len() - MAX_NAMED
        );
        found.push(Finding::warning(
            CHECK,
            seen,
            "gatewren state get /public/packageData lists them",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;
    use gatewren_host::backends::{ContainerState, EngineFacts};

    fn report(runtime: RuntimeKind, is_served: bool, is_here: bool) -> RuntimeReport {
        RuntimeReport {
            runtime,
            user: None,
            is_served,
            is_here,
            socket: Some(format!("/run/{runtime}.sock")),
            places: Vec::new(),
            engine: None,
            error: is_served.then(|| "it does not answer".to_owned()),
        }
    }

    fn container(name: &str, host_rights: &[&str]) -> ContainerDetails {
        let engine = EngineFacts {
            host_rights: host_rights.iter().map(ToString::to_string).collect(),
            ..EngineFacts::default()
        };
        ContainerDetails {
            name: name.parse().unwrap(),
            runtime: "docker",
            parent: None,
            hostname: None,
            state: ContainerState::Running,
            init_pid: None,
            addresses: Vec::new(),
            os: None,
            autostart: false,
            unprivileged: false,
            memory_bytes: None,
            cpu_usage_us: None,
            pids: None,
            disk_bytes: None,
            config: None,
            engine: Some(engine),
        }
    }

    #[test]
    fn a_runtime_that_is_here_and_not_served_is_a_hint_with_the_command() {
        let all = [
            report(RuntimeKind::Lxc, true, true),
            report(RuntimeKind::Docker, false, true),
            report(RuntimeKind::Podman, false, false),
        ];
        let found = check_runtime(&all[1], &all).unwrap();
        assert_eq!(found.state, FindingState::Skipped);
        let remedy = found.remedy.unwrap();
        assert!(
            remedy.contains("init --yes --runtime lxc --runtime docker,"),
            "{remedy}"
        );
        assert_eq!(check_runtime(&all[2], &all), None);
    }

    #[test]
    fn a_served_engine_without_a_usable_socket_is_a_problem() {
        for (is_here, words) in [(true, "it does not answer"), (false, "does not exist")] {
            let one = report(RuntimeKind::Podman, true, is_here);
            let found = check_runtime(&one, &[]).unwrap();
            assert_eq!(found.state, FindingState::Problem);
            assert!(found.seen.contains(words), "{found:?}");
            assert!(found.remedy.unwrap().contains("podman.socket"));
        }
        // LXC is served by default, also where it is not installed.
        assert_eq!(
            check_runtime(&report(RuntimeKind::Lxc, true, false), &[]),
            None
        );
    }

    #[test]
    fn an_engine_without_root_or_cgroups_version_2_is_a_warning() {
        let state = |cgroup_version: &str, is_rootless| {
            let engine = Some(EngineDescription {
                version: "20.10.24".to_owned(),
                cgroup_version: cgroup_version.to_owned(),
                is_rootless,
                ..EngineDescription::default()
            });
            let one = RuntimeReport {
                engine,
                ..report(RuntimeKind::Docker, true, true)
            };
            check_runtime(&one, &[]).unwrap().state
        };
        assert_eq!(state("2", false), FindingState::Good);
        assert_eq!(state("1", false), FindingState::Warning);
        assert_eq!(state("2", true), FindingState::Warning);
    }

    #[test]
    fn the_podman_of_a_user_is_named_with_what_serves_it() {
        let of_alice = |is_served, engine: Option<&str>| {
            let one = RuntimeReport {
                user: Some("alice".to_owned()),
                engine: engine.map(|driver| EngineDescription {
                    cgroup_driver: driver.to_owned(),
                    is_rootless: true,
                    ..EngineDescription::default()
                }),
                ..report(RuntimeKind::Podman, is_served, true)
            };
            check_runtime(&one, &[]).unwrap()
        };
        let found = of_alice(false, None);
        assert_eq!(found.state, FindingState::Skipped);
        assert!(
            found
                .remedy
                .unwrap()
                .starts_with("podman_users = [\"alice\"]")
        );
        assert_eq!(of_alice(true, Some("systemd")).state, FindingState::Good);
        let found = of_alice(true, Some("cgroupfs"));
        assert_eq!(found.state, FindingState::Warning);
        assert!(found.remedy.unwrap().contains("enable-linger alice"));
        let found = of_alice(true, None);
        assert_eq!(found.state, FindingState::Problem);
        assert!(found.remedy.unwrap().contains("enable --now podman.socket"));
    }

    #[test]
    fn each_container_that_counts_as_the_host_is_named_up_to_a_limit() {
        let usual = container("docker:web", &[]);
        let other = container("docker:portainer", &["it is privileged", "/run is mounted"]);
        let found = find_host_rights(&[usual, other.clone()]);
        assert_eq!(found.len(), 1);
        assert!(found[0].seen.starts_with("docker:portainer"), "{found:?}");
        assert!(
            found[0].seen.ends_with("it is privileged; /run is mounted"),
            "{found:?}"
        );
        let many = vec![other; MAX_NAMED + 3];
        let found = find_host_rights(&many);
        assert_eq!(found.len(), MAX_NAMED + 1);
        assert!(found[MAX_NAMED].seen.starts_with("3 more"), "{found:?}");
    }
}
