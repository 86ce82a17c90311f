//! `gatewren serve`: the front, started by systemd.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::console::runtime;
use crate::try_out::owner_code;
use gatewren_base::config::{
    ConfigError, HELPER_POLICY_FILE, INSTANCE_NAME_FORM, LogLevel, Settings, is_instance_name,
};
use gatewren_base::sys::{Secret, is_root, started_by_systemd};
use gatewren_base::telemetry;
use gatewren_server::app::{
    EngineSockets, HelperPlan, Server, ServerPlan, build, open_sockets, reject_connections,
    run as run_server,
};

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The settings; embedded defaults if the file does not exist
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/gatewren/gatewren.toml"
    )]
    config: PathBuf,

    /// The helper's limits, as helper.toml; used if systemd has started no helper and this command starts one
    #[arg(long, value_name = "FILE", default_value = HELPER_POLICY_FILE)]
    helper_policy: PathBuf,

    /// The name of this front, if several serve this server: its session ids begin with it
    #[arg(long, value_name = "NAME", value_parser = instance_name)]
    instance: Option<String>,
}

/// Checks the name of a front.
fn instance_name(name: &str) -> Result<String, String> {
    let fits = is_instance_name(name);
    let wrong = || format!("a name has {INSTANCE_NAME_FORM}");
    fits.then(|| name.to_owned()).ok_or_else(wrong)
}

/// Exit code for errors that a restart does not fix: settings or databases that cannot be used (sysexits.h would
/// be 78; systemd shows either). systemd does not restart the unit after it, `RestartPreventExitStatus=`.
const MUST_BE_FIXED: u8 = 2;

/// Serves until a signal stops it.
pub fn run(args: &ServeArgs) -> ExitCode {
    let settings = Settings::load(&args.config);
    let level = settings.as_ref().map(|settings| settings.log.level);
    telemetry::init(level.unwrap_or(LogLevel::Info));
    match runtime::build() {
        Ok(runtime) => runtime.block_on(serve(settings, args)),
        Err(cause) => fail(&cause),
    }
}

async fn serve(settings: Result<Settings, ConfigError>, args: &ServeArgs) -> ExitCode {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            // As plain text, one problem a line, like `gatewren check`.
            let _ = writeln!(std::io::stderr(), "gatewren: {error}");
            reject_connections(open_sockets(&[]).await.unwrap_or_default());
            return ExitCode::from(MUST_BE_FIXED);
        }
    };
    let sockets = match open_sockets(&settings.listen).await {
        Ok(sockets) => sockets,
        Err(error) => return fail(&error),
    };
    let Some(Ok(address)) = sockets.first().map(tokio::net::TcpListener::local_addr) else {
        return fail(&"no address to listen on; set `listen`");
    };
    let name = args
        .instance
        .as_ref()
        .unwrap_or(&settings.sessions.instance);
    let helper = helper(&settings, &args.helper_policy, name);
    match build(ServerPlan {
        settings,
        file: std::path::absolute(&args.config).ok(),
        helper,
        address: Some(address),
        instance: args.instance.clone(),
    })
    .await
    {
        Ok(server) => {
            let code = first_code(&server).await;
            run_server(server, sockets, move |server| {
                tracing::info!(url = server.url, "serving");
                warn_without_agents(server);
                log_setup_code(server, code.as_ref());
            })
            .await
        }
        Err(error) if error.is_lasting() => {
            tracing::error!("{error}");
            reject_connections(sockets);
            ExitCode::from(MUST_BE_FIXED)
        }
        Err(error) => fail(&error),
    }
}

/// The helper that systemd runs, or else a child process, which has no more privileges than this process.
fn helper(settings: &Settings, policy: &Path, instance: &str) -> HelperPlan {
    let socket = settings.helper.socket.clone();
    let there = socket.exists();
    if !there && (is_root() || !started_by_systemd()) {
        return HelperPlan::Child {
            directory: settings.state_dir.join(match instance {
                "" => "run".to_owned(),
                name => format!("run.{name}"),
            }),
            policy: Some(policy.to_owned()),
            sockets: EngineSockets::default(),
        };
    }
    if !there {
        // An unprivileged helper of our own could do nothing, and would be in the way when systemd's starts.
        tracing::error!(
            socket = %socket.display(),
            "the helper's socket does not exist, so tools that need root fail; run: systemctl start \
             gatewren-helper.socket"
        );
    }
    HelperPlan::Socket(socket)
}

/// No token is created unasked, so a first start serves no client.
fn warn_without_agents(server: &Server) {
    let agents = server.vault.agents().list().unwrap_or_default();
    if agents.iter().all(|agent| agent.revoked_ms.is_some()) {
        tracing::info!(
            "there are no agents yet; this creates one and shows its token once: gatewren agent add NAME --policy \
             observe"
        );
    }
}

/// Creates a code for the owner's first password, unless one exists: a code that was logged stays valid across a
/// restart.
async fn first_code(server: &Server) -> Option<Secret> {
    if server.vault.owner().has_code().unwrap_or(true) {
        return None;
    }
    owner_code(server).await.unwrap_or_default()
}

/// Logs the code. Users who may read the journal may set the first password: root, and the users that root
/// allows.
fn log_setup_code(server: &Server, code: Option<&Secret>) {
    let Some(code) = code else { return };
    let page = server.url.replace("/mcp", "/owner");
    tracing::info!(
        "the owner has no password yet; open {page} under a name or an address of this host, and set one with the \
         one-time code {}, valid for one day",
        code.expose()
    );
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    tracing::error!("{error}");
    ExitCode::FAILURE
}
