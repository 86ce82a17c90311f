//! Settings of the host: its name, time zone, language, keyboard, CPU frequency governor and compressed swap.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use gatewren_base::sys::InsideRoot;
use gatewren_wire::operations::{
    HostName, HostSetting, Keyboard, OperationEnd, OperationRefusal, SettingWord,
};

use super::hosts_file::renamed;
use super::zram;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools;
use crate::processes::answers::to_its_end;
use crate::processes::commands::require_root;
use crate::processes::step_error::step_end;

/// systemd's services on the system bus: service, object and interface.
const HOSTNAMED: [&str; 3] = of("org.freedesktop.hostname1", "/org/freedesktop/hostname1");
const TIMEDATED: [&str; 3] = of("org.freedesktop.timedate1", "/org/freedesktop/timedate1");
const LOCALED: [&str; 3] = of("org.freedesktop.locale1", "/org/freedesktop/locale1");

/// The longest pretty hostname. A longer one is rejected.
const PRETTY_BYTES: usize = 128;

/// The most bytes of a settings file or a list that are read.
const FILE_BYTES: u64 = 4 << 20;

/// The time zones that exist.
const ZONES: &str = "/usr/share/zoneinfo";

/// The locales that can be generated.
const LOCALES: &str = "/usr/share/i18n/SUPPORTED";

/// The keyboards that exist.
const KEYBOARDS: &str = "/usr/share/X11/xkb/rules/base.lst";

/// The CPUs in sysfs.
const PROCESSORS: &str = "/sys/devices/system/cpu";

/// An object whose interface has the name of its service.
const fn of(service: &'static str, object: &'static str) -> [&'static str; 3] {
    [service, object, service]
}

/// Applies a setting.
pub async fn perform(
    context: &mut OperationContext<'_>,
    setting: &HostSetting,
) -> Result<OperationEnd, OperationRefusal> {
    match setting {
        HostSetting::Hostname { hostname, pretty } => {
            let pretty = pretty.as_deref().map(check_pretty_name).transpose()?;
            require_root()?;
            set_names(context, hostname.as_ref(), pretty).await
        }
        HostSetting::Timezone { zone } => {
            let zone = zone.as_str();
            known_zone(Path::new(ZONES), zone)?;
            require_root()?;
            call(context, &TIMEDATED, &["SetTimezone", "sb", zone, "false"]).await
        }
        HostSetting::Language { locale } => set_language(context, locale).await,
        HostSetting::Keyboard(keyboard) => set_keyboard(context, keyboard).await,
        HostSetting::Governor { governor } => {
            let governor = governor.as_str().to_owned();
            to_its_end(move || govern(Path::new(PROCESSORS), &governor)).await?;
            Ok(OperationEnd::SUCCESS)
        }
        HostSetting::Zram { on } => step_end(zram::switch(context, *on).await),
    }
}

fn check_pretty_name(pretty: &str) -> Result<&str, OperationRefusal> {
    if pretty.len() > PRETTY_BYTES || pretty.contains(char::is_control) {
        return Err(OperationRefusal::bad_command(format!(
            "the pretty name must be one line of at most {PRETTY_BYTES} bytes"
        )));
    }
    Ok(pretty)
}

/// Sets the host name and its entry in `/etc/hosts`, and the pretty name.
async fn set_names(
    context: &mut OperationContext<'_>,
    hostname: Option<&HostName>,
    pretty: Option<&str>,
) -> Result<OperationEnd, OperationRefusal> {
    if let Some(pretty) = pretty {
        let set = ["SetPrettyHostname", "sb", pretty, "false"];
        let ending = call(context, &HOSTNAMED, &set).await?;
        if ending != OperationEnd::SUCCESS {
            return Ok(ending);
        }
    }
    let Some(hostname) = hostname else {
        return Ok(OperationEnd::SUCCESS);
    };
    let old = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let set = ["SetStaticHostname", "sb", hostname.as_str(), "false"];
    let ending = call(context, &HOSTNAMED, &set).await?;
    if ending == OperationEnd::SUCCESS {
        let new = hostname.clone();
        to_its_end(move || rewrite("hosts", |hosts| renamed(hosts, old.trim(), &new))).await?;
    }
    Ok(ending)
}

fn known_zone(zones: &Path, zone: &str) -> Result<(), OperationRefusal> {
    let file = fs::read(zones.join(zone)).unwrap_or_default();
    if file.starts_with(b"TZif") {
        return Ok(());
    }
    Err(OperationRefusal::bad_command(format!(
        "there is no time zone '{zone}' here; use a name below {ZONES}, such as Europe/Vienna"
    )))
}

/// Sets the language; generates a locale that does not exist yet.
async fn set_language(
    context: &mut OperationContext<'_>,
    locale: &SettingWord,
) -> Result<OperationEnd, OperationRefusal> {
    let locale = locale.as_str();
    require_root()?;
    if !["C.UTF-8", "C", "POSIX"].contains(&locale) && !is_made(context.helper, locale).await? {
        let supported = fs::read_to_string(LOCALES).map_err(|_| {
            OperationRefusal::failed(format!(
                "locale '{locale}' does not exist and cannot be generated; install the generator: apt install locales"
            ))
        })?;
        let line = known_locale(&supported, locale)?.to_owned();
        to_its_end(move || rewrite("locale.gen", |text| enabled(text, &line))).await?;
        let make = tools::HostTool::new("locale-gen", []);
        let ending = context.run_tool(&make).await?;
        if ending != OperationEnd::SUCCESS {
            return Ok(ending);
        }
    }
    let variable = format!("LANG={locale}");
    let set = ["SetLocale", "asb", "1", &variable, "false"];
    call(context, &LOCALED, &set).await
}

/// Returns whether the locale exists, in either spelling of its encoding.
async fn is_made(helper: &HelperContext, locale: &str) -> Result<bool, OperationRefusal> {
    let list = tools::HostTool::new("locale", ["-a"]);
    let normalize_locale = |name: &str| name.to_ascii_lowercase().replace("utf-8", "utf8");
    let there = tools::output(&list, &helper.orphans).await?;
    Ok(there
        .lines()
        .any(|name| normalize_locale(name) == normalize_locale(locale)))
}

/// Returns the line of the list that generates a locale, such as `de_AT.UTF-8 UTF-8`.
fn known_locale<'l>(supported: &'l str, locale: &str) -> Result<&'l str, OperationRefusal> {
    let mut lines = supported.lines();
    let line = lines.find(|line| line.split(' ').next() == Some(locale));
    line.ok_or_else(|| {
        OperationRefusal::bad_command(format!(
            "there is no locale '{locale}'; use a name in {LOCALES}, such as de_AT.UTF-8"
        ))
    })
}

/// Returns `locale.gen` with this line added or uncommented.
fn enabled(text: &str, line: &str) -> String {
    if text.lines().any(|there| there.trim() == line) {
        return text.to_owned();
    }
    let is_it = |there: &str| there.trim_start_matches(['#', ' ']).trim() == line;
    if !text.lines().any(is_it) {
        return format!("{}\n{line}\n", text.trim_end());
    }
    let lines = text
        .lines()
        .map(|there| if is_it(there) { line } else { there });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Sets the keyboard in Debian's own file, which console and desktop read when they start (keyboard(5)).
async fn set_keyboard(
    context: &mut OperationContext<'_>,
    keyboard: &Keyboard,
) -> Result<OperationEnd, OperationRefusal> {
    let list = fs::read_to_string(KEYBOARDS).map_err(|_| {
        OperationRefusal::failed(
            "no keyboard layouts are installed; install them: apt install console-setup",
        )
    })?;
    known_keyboard(&list, keyboard)?;
    require_root()?;
    let keyboard = keyboard.clone();
    to_its_end(move || rewrite("default/keyboard", |text| with_keyboard(text, &keyboard))).await?;
    if !Path::new("/usr/bin/setupcon").exists() && !Path::new("/bin/setupcon").exists() {
        return Ok(OperationEnd::SUCCESS);
    }
    // Without a console there is nothing to set now: saves the layout for the next boot.
    let save = tools::HostTool::new("setupcon", ["--save", "--force", "--keyboard-only"]);
    context.run_tool(&save).await?;
    Ok(OperationEnd::SUCCESS)
}

/// Checks that the list has every part of the keyboard; it lists a variant with its layout.
fn known_keyboard(list: &str, keyboard: &Keyboard) -> Result<(), OperationRefusal> {
    let mut section = "";
    let mut known: Vec<(&str, &str, &str)> = Vec::new();
    for line in list.lines() {
        if let Some(name) = line.strip_prefix("! ") {
            section = name.trim();
        } else if let Some((name, words)) = line.trim().split_once(char::is_whitespace) {
            known.push((section, name, words.trim()));
        }
    }
    let has = |section: &str, name: &str| known.iter().any(|(s, n, _)| *s == section && *n == name);
    let layout = keyboard.layout.as_str();
    let of_layout = |variant: &str| {
        let begins = format!("{layout}:");
        known
            .iter()
            .any(|(s, n, words)| *s == "variant" && *n == variant && words.starts_with(&begins))
    };
    let missing = |kind: &str, name: &str| {
        OperationRefusal::bad_command(format!(
            "there is no {kind} '{name}' here; {KEYBOARDS} lists them"
        ))
    };
    if !has("layout", layout) {
        return Err(missing("layout", layout));
    }
    if let Some(variant) = keyboard.variant.as_ref().filter(|v| !of_layout(v.as_str())) {
        return Err(missing(&format!("variant of {layout}"), variant.as_str()));
    }
    if let Some(model) = keyboard
        .model
        .as_ref()
        .filter(|m| !has("model", m.as_str()))
    {
        return Err(missing("model", model.as_str()));
    }
    match keyboard.options.iter().find(|o| !has("option", o.as_str())) {
        Some(option) => Err(missing("option", option.as_str())),
        None => Ok(()),
    }
}

/// Returns the file with these values; its other lines stay.
fn with_keyboard(text: &str, keyboard: &Keyboard) -> String {
    let options: Vec<&str> = keyboard.options.iter().map(SettingWord::as_str).collect();
    let word = |word: &Option<SettingWord>| {
        word.as_ref()
            .map_or(String::new(), |w| w.as_str().to_owned())
    };
    let mut values = vec![
        ("XKBLAYOUT", keyboard.layout.as_str().to_owned()),
        ("XKBVARIANT", word(&keyboard.variant)),
        ("XKBOPTIONS", options.join(",")),
    ];
    if keyboard.model.is_some() || !text.contains("XKBMODEL=") {
        let model = word(&keyboard.model);
        let usual = if model.is_empty() {
            "pc105".to_owned()
        } else {
            model
        };
        values.push(("XKBMODEL", usual));
    }
    let ours = |line: &str| {
        values
            .iter()
            .any(|(key, _)| line.trim().starts_with(&format!("{key}=")))
    };
    let kept = text.lines().filter(|line| !ours(line)).map(str::to_owned);
    let new = values
        .iter()
        .map(|(key, value)| format!("{key}=\"{value}\""));
    kept.chain(new)
        .flat_map(|line| [line, "\n".to_owned()])
        .collect()
}

/// Sets the governor of every CPU that has a choice; changes none if one of them does not offer it.
fn govern(processors: &Path, governor: &str) -> Result<(), OperationRefusal> {
    let entries = fs::read_dir(processors).into_iter().flatten().flatten();
    let places: Vec<_> = entries
        .map(|entry| entry.path().join("cpufreq"))
        .filter(|place| place.join("scaling_governor").exists())
        .collect();
    if places.is_empty() {
        return Err(OperationRefusal::failed(
            "the processors of this machine have no selectable governor",
        ));
    }
    for place in &places {
        let known = fs::read_to_string(place.join("scaling_available_governors"));
        let known = known.unwrap_or_default();
        if !known.split_whitespace().any(|known| known == governor) {
            let known = known.trim();
            let words = format!("there is no governor '{governor}' here; available: {known}");
            return Err(OperationRefusal::bad_command(words));
        }
    }
    for place in &places {
        let written = fs::OpenOptions::new()
            .write(true)
            .open(place.join("scaling_governor"))
            .and_then(|mut file| file.write_all(governor.as_bytes()));
        written.map_err(|e| OperationRefusal::failed(format!("the kernel rejected it: {e}")))?;
    }
    Ok(())
}

/// Rewrites a file below `/etc` atomically.
fn rewrite(name: &str, change: impl FnOnce(&str) -> String) -> Result<(), OperationRefusal> {
    let failed =
        |e: io::Error| OperationRefusal::failed(format!("/etc/{name} cannot be changed: {e}"));
    let etc = InsideRoot::open(Path::new("/etc")).map_err(failed)?;
    let text = match etc.read(name, 0, FILE_BYTES) {
        Ok((bytes, _)) => String::from_utf8(bytes).map_err(|e| failed(io::Error::other(e)))?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(failed(e)),
    };
    let changed = change(&text);
    if changed == text {
        return Ok(());
    }
    let (directory, file) = name.rsplit_once('/').unwrap_or((".", name));
    let written = etc.write(directory, file, changed.as_bytes(), None);
    written.map(drop).map_err(failed)
}

/// Calls a method of one of systemd's services without interactive authorization.
async fn call(
    context: &mut OperationContext<'_>,
    object: &[&str; 3],
    words: &[&str],
) -> Result<OperationEnd, OperationRefusal> {
    // `--`: an argument that begins with a hyphen is not taken for an option of busctl.
    let fixed = ["--timeout=60", "call", "--"]
        .into_iter()
        .chain(object.iter().copied());
    let tool = tools::HostTool::new("busctl", fixed.chain(words.iter().copied()));
    context.run_tool(&tool).await
}

#[cfg(test)]
mod tests {
    use super::super::settings::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn a_locale_is_made_once() {
        let text = "# de_AT.UTF-8 UTF-8\n# de_AT ISO-8859-1\nen_US.UTF-8 UTF-8\n";
        let at = enabled(text, "de_AT.UTF-8 UTF-8");
        assert_eq!(
            at,
            "de_AT.UTF-8 UTF-8\n# de_AT ISO-8859-1\nen_US.UTF-8 UTF-8\n"
        );
        assert_eq!(enabled(&at, "de_AT.UTF-8 UTF-8"), at);
        assert_eq!(enabled("a\n", "b UTF-8"), "a\nb UTF-8\n");
        let supported = "de_AT.UTF-8 UTF-8\nde_AT ISO-8859-1\n";
        assert_eq!(
            known_locale(supported, "de_AT").unwrap(),
            "de_AT ISO-8859-1"
        );
        assert!(known_locale(supported, "de").is_err());
    }

    // In the format of xkeyboard-config 2.35 (rules/base.lst).
    const LIST: &str = "! model\n  pc105           Generic 105-key PC\n\n! layout\n  us              English (US)\n  \
                        de              German\n\n! variant\n  nodeadkeys      de: German (no dead keys)\n  \
                        intl            us: English (US, intl.)\n\n! option\n  ctrl            Ctrl position\n  \
                        ctrl:nocaps     Caps Lock as Ctrl\n";

    fn keyboard(json: &str) -> Keyboard {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_keyboard_is_one_of_the_list() {
        let all =
            r#"{"layout":"de","variant":"nodeadkeys","model":"pc105","options":["ctrl:nocaps"]}"#;
        assert!(known_keyboard(LIST, &keyboard(all)).is_ok());
        for bad in [
            r#"{"layout":"xx"}"#,
            r#"{"layout":"nodeadkeys"}"#,
            r#"{"layout":"us","variant":"nodeadkeys"}"#,
            r#"{"layout":"us","model":"pc1"}"#,
            r#"{"layout":"us","options":["x:y"]}"#,
        ] {
            assert!(known_keyboard(LIST, &keyboard(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_else_stands_in_the_file_stays() {
        let text = "# KEYBOARD\nXKBMODEL=\"pc104\"\nXKBLAYOUT=\"us\"\nBACKSPACE=\"guess\"\n";
        let text = with_keyboard(
            text,
            &keyboard(r#"{"layout":"de","options":["ctrl:nocaps"]}"#),
        );
        assert_eq!(
            text,
            "# KEYBOARD\nXKBMODEL=\"pc104\"\nBACKSPACE=\"guess\"\nXKBLAYOUT=\"de\"\nXKBVARIANT=\"\"\n\
             XKBOPTIONS=\"ctrl:nocaps\"\n"
        );
        let new = with_keyboard("", &keyboard(r#"{"layout":"de"}"#));
        assert!(new.contains("XKBMODEL=\"pc105\"\n"), "{new}");
    }

    #[test]
    fn a_zone_is_a_file_of_rules() {
        let scratch = Scratch::new();
        fs::create_dir(scratch.join("Europe")).unwrap();
        fs::write(scratch.join("Europe/Vienna"), "TZif2").unwrap();
        fs::write(scratch.join("tzdata.zi"), "# version").unwrap();
        assert!(known_zone(scratch.path(), "Europe/Vienna").is_ok());
        for bad in ["Europe", "tzdata.zi", "Mars/Base"] {
            assert!(known_zone(scratch.path(), bad).is_err(), "{bad}");
        }
    }

    // A tree in the layout of sysfs (the kernel's Documentation/admin-guide/pm/cpufreq.rst), as the test machines
    // offer no choice of governors.
    #[test]
    fn a_governor_is_set_on_every_processor_or_on_none() {
        let scratch = Scratch::new();
        let place = |cpu: &str, file: &str| scratch.join(cpu).join("cpufreq").join(file);
        for (cpu, known) in [("cpu0", "performance powersave\n"), ("cpu1", "powersave\n")] {
            fs::create_dir_all(scratch.join(cpu).join("cpufreq")).unwrap();
            fs::write(place(cpu, "scaling_governor"), "powersave\n").unwrap();
            fs::write(place(cpu, "scaling_available_governors"), known).unwrap();
        }
        fs::create_dir(scratch.join("cpuidle")).unwrap();
        let now = |cpu| fs::read_to_string(place(cpu, "scaling_governor")).unwrap();
        assert!(govern(scratch.path(), "performance").is_err());
        assert_eq!(
            (now("cpu0"), now("cpu1")),
            ("powersave\n".into(), "powersave\n".into())
        );
        fs::write(place("cpu1", "scaling_available_governors"), "performance").unwrap();
        govern(scratch.path(), "performance").unwrap();
        assert!(now("cpu0").starts_with("performance") && now("cpu1").starts_with("performance"));
        assert!(govern(&scratch.join("cpuidle"), "powersave").is_err());
    }
}
