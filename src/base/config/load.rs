//! Loads the front's settings from their files, and checks the rules between values.

use std::path::Path;

use super::error::{ConfigError, Problem};
use super::reading::{self, SettingsText};
use super::reference::{FAMILIES, SETTINGS};
use super::resolved::{ResolvedSetting, resolve_settings};
use super::settings::Settings;
use super::space::Space;
use super::tls_settings::TlsMode;
#[cfg(feature = "testing")]
use super::{channel_keys, named, space_keys};

/// The default path of `gatewren serve`.
pub const SETTINGS_FILE: &str = "/etc/gatewren/gatewren.toml";

impl Settings {
    /// Reads a file and then each `conf.d/*.toml` in its directory, sorted by name. A later value replaces an
    /// earlier one.
    ///
    /// A missing file is an error, except for [`SETTINGS_FILE`], where the defaults apply.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::read(path).map(|(settings, _)| settings)
    }

    /// Like `load`, and also returns where each key was set.
    pub fn resolve(path: &Path) -> Result<(Self, Vec<ResolvedSetting>), ConfigError> {
        let (settings, files) = Self::read(path)?;
        let resolved = resolve_settings(&settings, &files);
        Ok((settings, resolved))
    }

    fn read(path: &Path) -> Result<(Self, Vec<SettingsText>), ConfigError> {
        let mut settings = Self::default();
        let mut read = Vec::new();
        let mut problems = Vec::new();
        let may_be_missing = path == Path::new(SETTINGS_FILE);
        match reading::with_fragments(path, may_be_missing) {
            Ok(files) => {
                for file in &files {
                    problems.extend(reading::apply_with(file, SETTINGS, FAMILIES, &mut settings));
                }
                read = files;
            }
            Err(found) => problems.extend(found),
        }
        if problems.is_empty() {
            let rules = settings.broken_rules().into_iter();
            problems.extend(rules.map(|message| Problem {
                file: path.to_owned(),
                line: None,
                message,
            }));
        }
        ConfigError::of(problems).map(|()| (settings, read))
    }

    /// Returns the rules between values that are broken.
    fn broken_rules(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let files = [&self.tls.cert, &self.tls.key];
        match self.tls.mode {
            TlsMode::Files if files.iter().any(|file| file.is_none()) => broken.push(
                "tls.mode is \"files\", so tls.cert and tls.key must both be the path of a PEM file; set \
                 them, or set tls.mode = \"own\""
                    .to_owned(),
            ),
            TlsMode::Own if files.iter().any(|file| file.is_some()) => broken.push(
                "tls.cert and tls.key are only read when tls.mode = \"files\"; set that, or \
                 remove them"
                    .to_owned(),
            ),
            _ => {}
        }
        let access = &self.access;
        if access.required_header.is_empty() && access.required_header_value_file.is_some() {
            broken.push(
                "access.required_header_value_file is set, but access.required_header is not; set the name of \
                 the header, or remove the file"
                    .to_owned(),
            );
        }
        broken.extend(self.edge_jwt.broken_rule());
        let limits = &self.limits;
        if limits.max_streams_per_agent > limits.max_streams {
            broken.push(format!(
                "limits.max_streams_per_agent is {}, but limits.max_streams, the limit of all agents \
                 together, is {}; raise the second or lower the first",
                limits.max_streams_per_agent, limits.max_streams
            ));
        }
        let empty = |(_, space): &(&String, &Space)| !space.host && space.containers.is_empty();
        let empty = self.spaces.iter().filter(empty);
        broken.extend(empty.map(|(name, _)| {
            format!("spaces.{name} is empty; set its containers, or set host = true")
        }));
        let channels = self.notify.iter();
        broken
            .extend(channels.filter_map(|(name, one)| one.broken_rule(&format!("notify.{name}"))));
        broken
    }
}

#[cfg(feature = "testing")]
impl Settings {
    /// Parses settings from the text of one file.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        let file = SettingsText::new(Path::new(SETTINGS_FILE), text);
        let mut problems = reading::apply_with(&file, SETTINGS, FAMILIES, &mut settings);
        if problems.is_empty() {
            let rules = settings.broken_rules().into_iter();
            problems.extend(rules.map(|message| Problem {
                file: SETTINGS_FILE.into(),
                line: None,
                message,
            }));
        }
        ConfigError::of(problems).map(|()| settings)
    }

    /// Returns all keys with their values, as a file.
    pub fn to_text(&self) -> String {
        let mut text = super::key::write_keys(SETTINGS, self);
        text.push_str(&named::write_sections(
            "spaces",
            space_keys::KEYS,
            &self.spaces,
        ));
        text.push_str(&named::write_sections(
            "notify",
            channel_keys::KEYS,
            &self.notify,
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::super::reference::settings_sample;
    use super::*;
    use crate::sys::Scratch;

    /// Loads a settings file with this text. Returns the error without the directory's path.
    fn problems(text: &str) -> String {
        let scratch = Scratch::new();
        let path = scratch.join("gatewren.toml");
        std::fs::write(&path, text).unwrap();
        let error = Settings::load(&path).unwrap_err().to_string();
        error.replace(&format!("{}/", scratch.path().display()), "")
    }

    #[test]
    fn the_sample_with_every_key_uncommented_is_the_defaults() {
        let scratch = Scratch::new();
        let path = scratch.join("gatewren.toml");
        let keys_only: String = settings_sample()
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(key) if !key.starts_with(' ') => format!("{key}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let key_lines = keys_only
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
        assert_eq!(key_lines.count(), SETTINGS.len());
        std::fs::write(&path, keys_only).unwrap();
        assert_eq!(Settings::load(&path).unwrap(), Settings::default());
    }

    #[test]
    fn the_sample_in_etc_is_the_one_printed_here() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../etc/gatewren.toml");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, settings_sample()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), settings_sample());
        assert!(Settings::load(Path::new(path)).is_ok());
    }

    #[test]
    fn every_default_is_a_value_that_may_be_written() {
        for key in SETTINGS {
            let text = (key.write)(&Settings::default());
            let value = toml::de::DeValue::parse(&text).unwrap();
            let mut settings = Settings::default();
            assert_eq!(
                (key.read)(&mut settings, value.get_ref()),
                Ok(()),
                "{}",
                key.path_in(key.section)
            );
        }
    }

    #[test]
    fn a_later_file_wins_and_only_toml_files_count() {
        let scratch = Scratch::new();
        let path = scratch.join("gatewren.toml");
        let write = |name: &str, text: &str| std::fs::write(scratch.join(name), text).unwrap();
        write(
            "gatewren.toml",
            "names = [\"a\"]\n[limits]\ndrain = \"1s\"\nmax_connections = 100\n",
        );
        std::fs::create_dir(scratch.join("conf.d")).unwrap();
        write("conf.d/20-b.toml", "[limits]\ndrain = \"3s\"\n");
        write(
            "conf.d/10-a.toml",
            "[limits]\ndrain = \"2s\"\nmax_connections = 200\n",
        );
        write("conf.d/30.toml.bak", "nonsense");
        write("conf.d/.40.toml", "nonsense");
        let settings = Settings::load(&path).unwrap();
        assert_eq!(settings.limits.drain, Duration::from_secs(3));
        assert_eq!(settings.limits.max_connections, 200);
        assert_eq!(settings.names, ["a"]);
        write("conf.d/15-bad.toml", "\nnames = 1\n");
        let error = Settings::load(&path).unwrap_err();
        assert_eq!(error.problems()[0].file, scratch.join("conf.d/15-bad.toml"));
        assert_eq!(error.problems()[0].line, Some(2));
    }

    #[test]
    fn the_standard_file_need_not_be_there_but_a_named_one_must() {
        let error = Settings::load(Path::new("/nonexistent/x.toml")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/nonexistent/x.toml: the file does not exist; create it, or omit the option to use \
             the defaults"
        );
        if !Path::new(SETTINGS_FILE).exists() {
            assert_eq!(
                Settings::load(Path::new(SETTINGS_FILE)),
                Ok(Settings::default())
            );
        }
    }

    #[test]
    fn a_name_is_repeated_on_one_line_and_not_for_ever() {
        let error = problems(&format!("[\"a\\n\\u001b[31m\"]\n[{}]\n", "b".repeat(1_000)));
        let mut lines = error.lines();
        assert!(
            lines.next().unwrap().contains("unknown section [a  [31m]"),
            "{error}"
        );
        assert!(
            lines.next().unwrap().len() < 150 && lines.next().is_none(),
            "{error}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_its_remedy() {
        let text = "\
lisen = [\"127.0.0.1:1\"]
names = [\"box:8443\"]
state_dir = \"var/lib\"
drain = \"10s\"
banana = 1
[tls]
mode = \"acme\"
[limit]
[limits]
max_connections = \"many\"
header_timout = \"1s\"
drain = 10
body_limit = \"1GiB\"
agent_calls = 0
[log]
level = 3
";
        let expected = "\
gatewren.toml:1: unknown key \"lisen\" in the head of the file; did you mean \"listen\"?
gatewren.toml:2: names must be a list of 0 to 64 entries, each a host name or an address without \
a port, such as \"box.lan\" or \"192.168.1.10\", but is [\"box:8443\"]
gatewren.toml:3: state_dir must be an absolute path in quotes, such as \"/var/lib/gatewren\", but \
is \"var/lib\"
gatewren.toml:4: unknown key \"drain\" in the head of the file; it belongs in [limits]
gatewren.toml:5: unknown key \"banana\" in the head of the file; remove it
gatewren.toml:7: tls.mode must be one of own, files, in quotes, but is \"acme\"
gatewren.toml:8: unknown section [limit]; did you mean [limits]?
gatewren.toml:10: limits.max_connections must be a whole number from 1 to 65536, but is \"many\"
gatewren.toml:11: unknown key \"header_timout\" in [limits]; did you mean \"header_timeout\"?
gatewren.toml:12: limits.drain must be a time from \"1s\" to \"5m\", with one of the units ms, s, m, \
h, d, but is 10
gatewren.toml:13: limits.body_limit must be a size from \"4KiB\" to \"64MiB\", with one of the units \
B, KiB, MiB, but is \"1GiB\"
gatewren.toml:14: limits.agent_calls must be a whole number from 1 to 4096, but is 0
gatewren.toml:16: log.level must be one of error, warn, info, debug, trace, in quotes, but is 3";
        assert_eq!(problems(text), expected);
    }

    #[test]
    fn what_is_no_toml_is_said_with_its_line() {
        let error = problems("names = []\nlisten = [\n");
        assert!(error.starts_with("gatewren.toml:"), "{error}");
        assert!(error.contains(": the file is not valid TOML: "), "{error}");
        let twice = problems("names = []\nnames = []\n");
        assert!(
            twice.starts_with("gatewren.toml:2: the file is not valid TOML: duplicate key"),
            "{twice}"
        );
    }

    #[test]
    fn a_section_where_a_value_belongs_and_a_value_where_a_section_belongs() {
        assert_eq!(
            problems("[names]\n"),
            "gatewren.toml:1: \"names\" is a key, not a section; write names = … at the head of the \
             file"
        );
        assert_eq!(
            problems("tls = 1\n"),
            "gatewren.toml:1: \"tls\" is a section; write its keys below a line [tls]"
        );
    }

    #[test]
    fn rules_between_values() {
        assert_eq!(
            problems("[edge_jwt]\nheader = \"x-id\"\n"),
            "gatewren.toml: edge_jwt needs all of header, jwks, audience and issuer; set the missing \
             ones, or remove the others"
        );
        assert_eq!(
            problems("[access]\nrequired_header_value_file = \"/v\"\n"),
            "gatewren.toml: access.required_header_value_file is set, but access.required_header is not; set \
             the name of the header, or remove the file"
        );
        assert_eq!(
            problems("[tls]\nmode = \"files\"\ncert = \"/c.pem\"\n"),
            "gatewren.toml: tls.mode is \"files\", so tls.cert and tls.key must both be the path of \
             a PEM file; set them, or set tls.mode = \"own\""
        );
        assert_eq!(
            problems("[tls]\nkey = \"/k.pem\"\n"),
            "gatewren.toml: tls.cert and tls.key are only read when tls.mode = \"files\"; set that, \
             or remove them"
        );
        assert_eq!(
            problems("[limits]\nmax_streams = 8\n"),
            "gatewren.toml: limits.max_streams_per_agent is 1024, but limits.max_streams, the limit of \
             all agents together, is 8; raise the second or lower the first"
        );
    }

    #[test]
    fn spaces_have_names_of_their_owners_choosing() {
        let scratch = Scratch::new();
        let path = scratch.join("gatewren.toml");
        let sample = settings_sample();
        let (_, example) = sample.split_once("# [spaces.media]").unwrap();
        let example = format!("[spaces.media]{example}").replace("\n# ", "\n");
        std::fs::write(&path, format!("{example}\n[spaces.box]\nhost = true\n")).unwrap();
        let spaces = Settings::load(&path).unwrap().spaces;
        assert_eq!(spaces.keys().collect::<Vec<_>>(), ["box", "media"]);
        let media = &spaces["media"];
        assert_eq!((media.containers.len(), media.host), (2, false));
        assert!(media.containers[1].matches("arr-sonarr"));
        assert!(spaces["box"].host && spaces["box"].containers.is_empty());
    }

    #[test]
    fn channels_have_names_of_their_owners_choosing() {
        let scratch = Scratch::new();
        let path = scratch.join("gatewren.toml");
        let sample = settings_sample();
        let (_, example) = sample.split_once("# [notify.phone]").unwrap();
        let (example, _) = example.split_once("\n\n").unwrap();
        let example = format!("[notify.phone]{example}")
            .replace("\n# ", "\n")
            .replace("\n#\n", "\n");
        std::fs::write(&path, example).unwrap();
        let channels = Settings::load(&path).unwrap().notify;
        assert_eq!(channels.keys().collect::<Vec<_>>(), ["hook", "phone"]);
        assert!(channels["phone"].agents && !channels["hook"].agents);
        assert_eq!(channels["hook"].on.len(), 1);
    }

    #[test]
    fn what_is_wrong_with_a_channel_is_said() {
        let text = "\
[notify.phone]
kind = \"sms\"
url = \"ntfy.sh\"
topic = \"a b\"
token_file = \"token\"
on = [\"all\"]
adress = \"x\"
[notify.Phone]
";
        let expected = "\
gatewren.toml:2: notify.phone.kind must be one of ntfy, webhook, mail, push, in quotes, but is \"sms\"
gatewren.toml:3: notify.phone.url must be a URL in quotes, such as \"https://ntfy.example\", without a user \
name; plain http:// is only for this server and the local network, but is \"ntfy.sh\"
gatewren.toml:4: notify.phone.topic must be 1 to 64 of A-Z, a-z, 0-9, _ and -, in quotes, but is \"a b\"
gatewren.toml:5: notify.phone.token_file must be an absolute path in quotes, such as \"/var/lib/gatewren\", but is \
\"token\"
gatewren.toml:6: notify.phone.on must be a list of 0 to 64 entries, each one of info, warning, error, inbox in \
quotes, but is [\"all\"]
gatewren.toml:7: unknown key \"adress\" in [notify.phone]; remove it
gatewren.toml:8: the name of a channel has 1 to 32 of a-z, 0-9, _ and -; \"Phone\" is invalid";
        assert_eq!(problems(text), expected);
        let many: Vec<String> = (0..9)
            .map(|n| format!("[notify.c{n}]\nurl = \"https://x\"\ntopic = \"t\"\n"))
            .collect();
        let error = problems(&many.concat());
        assert!(error.ends_with("the limit is 8 channels"), "{error}");
        assert_eq!(
            problems("[notify.a]\nkind = \"webhook\"\n"),
            "gatewren.toml: notify.a has no url; set it"
        );
    }

    #[test]
    fn what_is_wrong_with_a_space_is_said() {
        let text = "\
[spaces.media]
container = [\"jellyfin\"]
containers = [\"a/b\"]
host = 1
[spaces.\"*\"]
[spaces.Media]
[space.media]
host = true
[spaces]
media2 = true
";
        let expected = "\
gatewren.toml:2: unknown key \"container\" in [spaces.media]; did you mean \"containers\"?
gatewren.toml:3: spaces.media.containers must be a list of 0 to 64 entries, each a container's name in \
quotes, where * matches any characters and ? matches one, such as \"arr-*\", but is [\"a/b\"]
gatewren.toml:4: spaces.media.host must be true or false, but is 1
gatewren.toml:5: the name of a space has 1 to 32 of a-z, 0-9, _ and -; \"*\" is invalid
gatewren.toml:6: the name of a space has 1 to 32 of a-z, 0-9, _ and -; \"Media\" is invalid
gatewren.toml:7: unknown section [space]; did you mean [spaces]?
gatewren.toml:10: \"spaces\" is a group of sections; write a line [spaces.NAME] and the keys below it";
        assert_eq!(problems(text), expected);
        assert_eq!(
            problems("spaces = 1\n"),
            "gatewren.toml:1: \"spaces\" is a group of sections; write a line [spaces.NAME] and the keys \
             below it"
        );
        assert_eq!(
            problems("[spaces.media]\n"),
            "gatewren.toml: spaces.media is empty; set its containers, or set host = true"
        );
        let many: Vec<String> = (0..65)
            .map(|n| format!("[spaces.s{n}]\nhost = true\n"))
            .collect();
        let error = problems(&many.concat());
        assert!(error.ends_with("the limit is 64 spaces"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_remedy() {
        let scratch = Scratch::new();
        let path = scratch.join("gatewren.toml");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        let error = Settings::load(&path).unwrap_err().to_string();
        assert!(
            error.ends_with(": reading it failed: the file is not UTF-8"),
            "{error}"
        );
        std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
        let error = Settings::load(&path).unwrap_err().to_string();
        assert!(
            error.ends_with(": reading it failed: the file is longer than 1 MiB"),
            "{error}"
        );
        let folder = PathBuf::from(scratch.path());
        let error = Settings::load(&folder).unwrap_err().to_string();
        assert!(error.contains("reading it failed: "), "{error}");
    }
}
