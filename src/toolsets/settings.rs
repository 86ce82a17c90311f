//! `server_set_*`, `server_governor`, `server_zram`: what the host is called, where it is, what it speaks, how it runs.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::failure::failed;
use crate::backends::{
    BackendError, CompressedSwap, ErrorKind, Governors, HostName, HostSetting, HostSettings,
    Keyboard, SettingWord, Setup,
};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// What every machine can be set.
pub fn tools(settings: Arc<Setup>) -> Toolset<Setup> {
    Toolset::over(settings)
        .named("server")
        .tool("server_set_hostname", Risk::Write, set_hostname)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Name the server")
        .startos("server.set-hostname", &[("name", "pretty_name")])
        .syncs_state()
        .tool("server_set_timezone", Risk::Write, set_timezone)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the time zone")
        .syncs_state()
        .tool("server_set_language", Risk::Write, set_language)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the language")
        .startos("server.set-language", &[])
}

/// What a machine with keyboards can be set.
pub fn keyboard_tools(settings: Arc<Setup>) -> Toolset<Setup> {
    Toolset::over(settings)
        .named("server")
        .tool("server_set_keyboard", Risk::Write, set_keyboard)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Set the keyboard")
        .startos("server.set-keyboard", &[])
        .leaving_aside(&[("keymap", "string")])
}

/// What a machine can be set whose processors choose their frequency.
pub fn governor_tools(settings: Arc<Setup>) -> Toolset<Setup> {
    Toolset::over(settings)
        .named("server")
        .tool("server_governor", Risk::Write, governor)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("CPU governor")
        .startos("server.experimental.governor", &[])
}

/// What a machine can be set whose kernel compresses swap in memory.
pub fn zram_tools(settings: Arc<Setup>) -> Toolset<Setup> {
    Toolset::over(settings)
        .named("server")
        .tool("server_zram", Risk::Write, zram)
        .about(Scope::Host)
        .through(HelperClass::HostSettings)
        .titled("Compressed swap")
        .startos("server.experimental.zram", &[])
}

/// Gives the host a name, in the network, for people, or both, and returns how it is set then. `/etc/hosts` gets the
/// name too. It fails for what cannot be a host name. Programs that run keep the old one until they start again;
/// certificates and other machines do not hear of it. `server_info` shows it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetHostname {
    /// The name in the network, such as `nas` or `nas.home.arpa`; as it is when absent.
    hostname: Option<HostName>,
    /// The name for people, in one line, at most 128 bytes; as it is when absent, none when empty.
    pretty_name: Option<String>,
}

async fn set_hostname(settings: Arc<Setup>, asked: SetHostname, cx: Cx) -> Result<HostSettings> {
    if asked.hostname.is_none() && asked.pretty_name.is_none() {
        let words = "say hostname, pretty_name, or both";
        return Err(failed(BackendError::new(ErrorKind::Refused, words)));
    }
    let setting = HostSetting::Hostname {
        hostname: asked.hostname,
        pretty: asked.pretty_name,
    };
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Sets the host's time zone, and returns how it is set then. It fails for a zone that the host does not know. The
/// clock itself stays as it is. `server_time` shows both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetTimezone {
    /// A name of the tz database, such as `Europe/Vienna` or `UTC`.
    timezone: SettingWord,
}

async fn set_timezone(
    settings: Arc<Setup>,
    SetTimezone { timezone }: SetTimezone,
    cx: Cx,
) -> Result<HostSettings> {
    let setting = HostSetting::Timezone { zone: timezone };
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Sets the locale of the host's programs, which is made first where it is not there, and returns how it is set then.
/// It fails for one that the host does not know. Programs that run keep theirs: `unit_restart` or `server_restart`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetLanguage {
    /// A locale with its encoding, such as `de_AT.UTF-8`.
    language: SettingWord,
}

async fn set_language(
    settings: Arc<Setup>,
    SetLanguage { language }: SetLanguage,
    cx: Cx,
) -> Result<HostSettings> {
    let setting = HostSetting::Language { locale: language };
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Sets what the keys of the host's own keyboard mean, and returns how it is set then. It fails for what the host does
/// not know. The console has it when the host has started again (`server_restart`).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetKeyboard {
    /// A layout of XKB's, such as `de`.
    layout: SettingWord,
    /// A variant of it, such as `nodeadkeys`.
    variant: Option<SettingWord>,
    /// A model, such as `pc105`; as it is when absent.
    model: Option<SettingWord>,
    /// Options, such as `ctrl:nocaps`.
    #[serde(default)]
    options: Vec<SettingWord>,
}

async fn set_keyboard(settings: Arc<Setup>, asked: SetKeyboard, cx: Cx) -> Result<HostSettings> {
    let setting = HostSetting::Keyboard(Keyboard {
        layout: asked.layout,
        variant: asked.variant,
        model: asked.model,
        options: asked.options,
    });
    settings.set(setting, cx.reference()).await.map_err(failed)
}

/// Chooses how the processors choose their frequency, until the host starts again, and returns what is chosen and what
/// can be; without `set` nothing is changed. It fails for what the host does not know. `server_metrics` shows
/// temperatures.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Governor {
    /// A governor of the kernel's, such as `powersave` or `performance`.
    set: Option<SettingWord>,
}

async fn governor(settings: Arc<Setup>, Governor { set }: Governor, cx: Cx) -> Result<Governors> {
    let setting = set.map(|governor| HostSetting::Governor { governor });
    let governors = settings.govern(setting, cx.reference()).await;
    governors.map_err(failed)
}

/// Switches compressed swap in memory on, a device of half the memory's size, or off, until the host starts again, and
/// returns what there is of it; without `enable` nothing is changed. It fails where another program has made it, which
/// is left as it is, and where what is swapped out would find no room. `server_metrics` shows memory and swap.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Zram {
    /// Whether there is to be some.
    enable: Option<bool>,
}

async fn zram(settings: Arc<Setup>, Zram { enable }: Zram, cx: Cx) -> Result<CompressedSwap> {
    let swap = settings.compress(enable, cx.reference()).await;
    swap.map_err(failed)
}
