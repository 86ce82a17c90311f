//! Checks the host, besides its settings: the certificate, the state directory and the helper's policy.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use gatewren_base::config::{
    HELPER_POLICY_FILE, HelperPolicy, Problem, SETTINGS_FILE, Settings, TlsMode,
};
use gatewren_base::sys::{files, is_root, may_use, now_ms, own_uid, read_secret, rfc3339};
use gatewren_gate::http::TlsServer;
use gatewren_server::app::certificate;

/// The files of a state directory that the service must be able to write.
const WRITTEN: [&str; 7] = [
    "lock",
    "vault.db",
    "vault.db-wal",
    "vault.db-shm",
    "state.db",
    "state.db-wal",
    "state.db-shm",
];

/// The findings: problems that prevent a start, and warnings.
#[derive(Debug, Default)]
pub struct Findings {
    /// To fix before a start.
    pub problems: Vec<Problem>,
    /// To look into.
    pub warnings: Vec<Problem>,
}

impl Findings {
    fn problem(&mut self, place: &Path, message: String) {
        self.problems.push(problem(place, message));
    }

    fn warning(&mut self, place: &Path, message: String) {
        self.warnings.push(problem(place, message));
    }

    /// Checks the files that valid settings name; writes nothing.
    pub fn of(settings: &Settings, config: &Path) -> Self {
        let mut found = Self::default();
        found.certificate(settings, config);
        found.state_directory(&settings.state_dir);
        found.required_value(settings);
        found
    }

    fn certificate(&mut self, settings: &Settings, config: &Path) {
        let examined = certificate(settings).map_err(|error| error.to_string());
        // Our own certificate is in the state directory, which is checked separately.
        let ours = settings.tls.mode == TlsMode::Own;
        let beyond = ours && !may_use(&settings.state_dir);
        let examined = examined.and_then(|source| {
            if beyond {
                return Ok(None);
            }
            TlsServer::examine(&source).map_err(|error| error.to_string())
        });
        match examined {
            Err(words) => self.problem(config, words),
            Ok(Some(expires)) => self.end_of_certificate(settings, config, expires),
            Ok(None) => {}
        }
        if let Some(key) = &settings.tls.key {
            self.owner_of_key(key, &settings.state_dir);
        }
    }

    /// The file with the value of the required header, which the service must be able to read.
    fn required_value(&mut self, settings: &Settings) {
        let Some(file) = &settings.access.required_header_value_file else {
            return;
        };
        // Run by root, this does not see the file as the service does, which may own it.
        let owners = files::owner(file)
            .ok()
            .zip(files::owner(&settings.state_dir).ok());
        let is_of_service = is_root()
            && owners.is_some_and(|(of_file, service)| of_file == service && of_file != 0);
        if !is_of_service && let Err(cause) = read_secret(file) {
            self.problem(file, cause.to_string());
        }
    }

    fn end_of_certificate(&mut self, settings: &Settings, config: &Path, expires: i64) {
        let expires_ms = u64::try_from(expires).unwrap_or(0).saturating_mul(1_000);
        if expires_ms <= now_ms() {
            let when = rfc3339(expires_ms);
            let words = format!("the certificate has expired ({when}); clients will reject it");
            let cert = settings.tls.cert.as_deref();
            self.warning(cert.unwrap_or(config), words);
        }
    }

    /// Only its owner may read a private key, so the owner must be the service.
    fn owner_of_key(&mut self, key: &Path, state_dir: &Path) {
        let owners = files::owner(key).ok().zip(files::owner(state_dir).ok());
        if let Some((of_key, service)) = owners
            && is_root()
            && of_key != service
        {
            let shown = key.display();
            self.problem(key, format!(
                "only its owner, uid {of_key}, can read it, but the service runs as uid {service}, the owner of \
                 state_dir; run: chown {service} {shown}"
            ));
        }
    }

    fn state_directory(&mut self, directory: &Path) {
        let shown = directory.display();
        let facts = match fs::metadata(directory) {
            Ok(facts) => facts,
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return self.missing(directory);
            }
            Err(cause) => {
                return self.problem(directory, format!("cannot use state_dir: {cause}"));
            }
        };
        if !facts.is_dir() {
            return self.problem(
                directory,
                "state_dir is not a directory; set another one".to_owned(),
            );
        }
        if files::mode(directory).is_ok_and(|mode| mode & 0o002 != 0) {
            let words = format!("all users can write to state_dir; run: chmod o-w {shown}");
            self.problem(directory, words);
        }
        if !may_use(directory) {
            let words = format!(
                "uid {} cannot write to state_dir; its owner must be the user that gatewren runs as, and its file \
                 system must be writable",
                own_uid()
            );
            return self.problem(directory, words);
        }
        let Ok(owner) = files::owner(directory) else {
            return;
        };
        for file in WRITTEN.map(|name| directory.join(name)) {
            if let Ok(other) = files::owner(&file)
                && other != owner
            {
                let words = format!(
                    "it belongs to uid {other}, but the service runs as uid {owner}, the owner of its directory, and \
                     could not write it; run: chown --reference={shown} {}",
                    file.display()
                );
                self.problem(&file, words);
            }
        }
    }

    /// A missing directory is created at the start if the user may create it.
    fn missing(&mut self, directory: &Path) {
        let above = directory.ancestors().find(|above| above.exists());
        if !above.is_some_and(may_use) {
            let words = format!(
                "state_dir does not exist, and uid {} cannot create it; run: install -d -m 700 -o gatewren {}",
                own_uid(),
                directory.display()
            );
            // A warning only: another user may start the server, perhaps on another machine.
            self.warning(directory, words);
        }
    }

    /// Checks the helper's policy: the file that was named, or the standard one beside the standard settings.
    pub fn helper(&mut self, named: Option<&Path>, config: &Path) {
        let standard = config == Path::new(SETTINGS_FILE);
        let file = match named {
            Some(file) => file,
            None if standard => Path::new(HELPER_POLICY_FILE),
            None => return,
        };
        if let Err(cause) = File::open(file)
            && cause.kind() == ErrorKind::PermissionDenied
        {
            let words = format!("not checked: uid {} cannot read it", own_uid());
            return self.warning(file, words);
        }
        if let Err(error) = HelperPolicy::load(file) {
            self.problems.extend_from_slice(error.problems());
        }
    }
}

fn problem(place: &Path, message: String) -> Problem {
    Problem {
        file: place.to_owned(),
        line: None,
        message,
    }
}
