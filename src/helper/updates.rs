//! What apt would upgrade on the host; nothing is fetched, installed or locked.

use crate::exec::Ending;

use super::{house::House, pump::Pump, refusal::Refusal, tools};

/// Prints a simulated upgrade. Owners may have set apt to say less (quiet), or to upgrade by other rules.
pub async fn check(house: &House, pump: &mut Pump) -> Result<Ending, Refusal> {
    let tool = tools::Tool {
        name: "apt-get",
        args: [
            "--simulate",
            "--quiet=1",
            "--option=Debug::NoLocking=true",
            "--option=APT::Get::Show-User-Simulation-Note=false",
            "dist-upgrade",
        ]
        .map(str::to_owned)
        .into(),
    };
    tools::carry(&tool, pump, &house.strays).await
}
