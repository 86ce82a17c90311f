//! The gatewren that a command is about: the service of the settings, or a directory of `try`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use gatewren_base::config::{SETTINGS_FILE, Settings};
use gatewren_base::sys::{LockHolder, act_as_owner_of, is_root, sanitize};
use gatewren_store::vault::Vault;

/// The arguments of a command with subcommands about one gatewren.
#[derive(Debug, clap::Args)]
pub struct SubcommandArgs<S: Subcommand> {
    /// The subcommand with its own arguments.
    #[command(subcommand)]
    pub subcommand: S,

    /// The gatewren that it is about.
    #[command(flatten)]
    pub place: InstanceArgs,

    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Options that several commands have.
#[derive(Debug, clap::Args)]
pub struct InstanceArgs {
    /// The settings file that names the state directory [default: /etc/gatewren/gatewren.toml]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    /// The state directory (for `gatewren try`)
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,
}

/// The words of a hint such as `gatewren agent rotate NAME`.
const LONGEST_HINT: usize = 4;

/// The error for a file that this user cannot read.
fn unreadable(file: &Path, cause: &io::Error) -> String {
    let what = format!("cannot read {}: {cause}", file.display());
    if cause.kind() != io::ErrorKind::PermissionDenied || is_root() {
        return what;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!(
        "{what}. Run it as root: sudo gatewren {}",
        sanitize(&words.join(" "))
    )
}

impl InstanceArgs {
    /// Returns the path of a database in the state directory. It must exist, because only the server creates
    /// databases.
    ///
    /// Root acts as the directory's owner from here on: the files beside a database must stay the server's, and
    /// root must not follow links that the server's user has created.
    pub fn file(&self, name: &str) -> Result<PathBuf, String> {
        let directory = match &self.dir {
            Some(directory) => directory.clone(),
            None => self.settings()?.state_dir,
        };
        let file = directory.join(name);
        let exists = file
            .try_exists()
            .map_err(|cause| unreadable(&file, &cause))?;
        if exists {
            File::open(&file).map_err(|cause| unreadable(&file, &cause))?;
            return match act_as_owner_of(&directory) {
                Ok(()) => Ok(file),
                Err(cause) => Err(format!(
                    "cannot act as the owner of {}: {cause}",
                    directory.display()
                )),
            };
        }
        Err(format!(
            "{} not found; start gatewren once, or give its state directory with --dir",
            file.display()
        ))
    }

    /// Rejects a user who may not read the state, before a command takes the server for silent or asks for anything.
    pub fn require_access(&self, settings: &Settings) -> Result<(), String> {
        let file = self.directory(settings).join("vault.db");
        match File::open(&file) {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                Err(unreadable(&file, &cause))
            }
            // A file that is missing is another matter: the server may not have been started yet.
            _ => Ok(()),
        }
    }

    /// Whether a directory was named instead of the settings' own.
    pub fn is_a_directory(&self) -> bool {
        self.dir.is_some()
    }

    /// The state directory: the named one, or the one of the settings.
    pub fn directory(&self, settings: &Settings) -> PathBuf {
        let named = self.dir.as_ref();
        named.unwrap_or(&settings.state_dir).clone()
    }

    /// Loads the settings of that gatewren. A directory named without settings has the defaults, as with `try`.
    pub fn settings(&self) -> Result<Settings, String> {
        let file = match (&self.config, &self.dir) {
            (Some(file), _) => file,
            (None, Some(_)) => return Ok(Settings::default()),
            (None, None) => Path::new(SETTINGS_FILE),
        };
        Settings::load(file).map_err(|e| e.to_string())
    }

    /// The same, with the address that the running server listens on, which systemd or `try` may have chosen.
    pub fn settings_as_served(&self) -> Result<Settings, String> {
        let mut settings = self.settings()?;
        let holder = LockHolder::of(&self.directory(&settings));
        settings.listen = holder
            .and_then(|holder| holder.address)
            .map_or(settings.listen, |address| vec![address]);
        Ok(settings)
    }

    /// The options as a further command needs them, after a space; empty if there are none.
    pub fn options(&self) -> String {
        let option = |name: &str, path: &Option<PathBuf>| match path {
            Some(path) => format!(" --{name} {}", sanitize(&path.to_string_lossy())),
            None => String::new(),
        };
        option("config", &self.config) + &option("dir", &self.dir)
    }

    /// Adds the options to the command that an error of `gatewren agent` or `gatewren pair` may end with.
    pub fn complete_hint(&self, words: String) -> String {
        let is_command = |hint: &str| hint.split(' ').count() <= LONGEST_HINT;
        match words
            .rfind("gatewren agent ")
            .and_then(|at| words.get(at..))
        {
            Some(hint) if is_command(hint) => words + &self.options(),
            _ => words,
        }
    }

    /// Adds the options to each `gatewren agent` command that a text has as code.
    pub fn complete_agent_commands(&self, text: &str) -> String {
        let parts = text.split('`').map(|part| match part {
            command if command.starts_with("gatewren agent ") => {
                command.to_owned() + &self.options()
            }
            words => words.to_owned(),
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// Whether the settings are those of the service.
    pub fn is_standard(&self) -> bool {
        self.dir.is_none() && self.file_of_settings() == Path::new(SETTINGS_FILE)
    }

    /// The path of the settings file, even if it does not exist.
    pub fn file_of_settings(&self) -> PathBuf {
        let file = self.config.clone();
        file.unwrap_or_else(|| SETTINGS_FILE.into())
    }

    /// The same, with the state directory that was named.
    pub fn settings_in_directory(&self) -> Result<Settings, String> {
        let mut settings = self.settings()?;
        if let Some(directory) = &self.dir {
            settings.state_dir = std::path::absolute(directory)
                .map_err(|e| format!("--dir {}: {e}", directory.display()))?;
        }
        Ok(settings)
    }

    /// The settings file; `None` for a directory named without settings.
    pub fn config_file(&self) -> Option<PathBuf> {
        match (&self.config, &self.dir) {
            (Some(file), _) => Some(file.clone()),
            (None, Some(_)) => None,
            (None, None) => Some(SETTINGS_FILE.into()),
        }
    }

    /// Opens the vault.
    pub fn vault(&self) -> Result<Vault, String> {
        Vault::open(&self.file("vault.db")?).map_err(|e| e.to_string())
    }
}
