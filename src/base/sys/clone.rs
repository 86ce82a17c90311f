//! clone3(2): a child as a copy of this process, or in its memory until it executes a program.

use std::ffi::c_void;
use std::ptr;

use nix::errno::Errno;
use nix::libc;

/// `struct clone_args`, up to the cgroup.
#[repr(C)]
#[derive(Default)]
pub(super) struct CloneArgs {
    /// `CLONE_` words.
    pub flags: u64,
    /// Where the pidfd goes, with [`CLONE_PIDFD`].
    pub pidfd: u64,
    pub child_tid: u64,
    pub parent_tid: u64,
    /// What the parent gets when the child ends.
    pub exit_signal: u64,
    /// The lowest address of the child's stack, if it gets one.
    pub stack: u64,
    pub stack_size: u64,
    pub tls: u64,
    pub set_tid: u64,
    pub set_tid_size: u64,
    /// The descriptor of a cgroup, with [`CLONE_INTO_CGROUP`].
    pub cgroup: u64,
}

pub(super) const CLONE_VM: u64 = 0x100;
pub(super) const CLONE_PIDFD: u64 = 0x1000;
pub(super) const CLONE_VFORK: u64 = 0x4000;
pub(super) const CLONE_PARENT: u64 = 0x8000;
pub(super) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What a child that shares its parent's memory runs; it gets the pointer that [`clone_sharing`] was given.
pub(super) type SharingChild = extern "C" fn(*const c_void) -> !;

/// Forks with these arguments; returns 0 in the child.
///
/// The child may make system calls only, unless this process has one thread: another thread may have held a lock.
pub(super) fn clone_copy(args: &CloneArgs) -> Result<i32, Errno> {
    let size = size_of::<CloneArgs>();
    #[expect(unsafe_code, reason = "clone3 has no safe wrapper")]
    // SAFETY: without CLONE_VM this is a fork; `args` lives through the call, and the kernel writes only the pidfd that
    // it names.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, ptr::from_ref(args), size) };
    Errno::result(pid).and_then(|pid| i32::try_from(pid).map_err(|_| Errno::EOVERFLOW))
}

/// Starts a child that runs `run` on the stack of `args`, in this process's memory. This thread goes on when the child
/// has executed a program or ended.
///
/// # Errors
/// `ENOSYS` on other processors than x86-64 and arm64, on kernels before 5.3 and below emulators.
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(unsafe_code, reason = "the child starts on another stack"),
    expect(clippy::fn_to_numeric_cast_any, reason = "a register holds an address")
)]
pub(super) fn clone_sharing(
    args: &CloneArgs,
    run: SharingChild,
    given: *const c_void,
) -> Result<i32, Errno> {
    let outcome: libc::c_long;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the child never returns: it calls `run` on its own stack, which the kernel has set. The parent continues
    // after the last label. `syscall` changes three registers, which are listed.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => outcome,
            in("rdi") ptr::from_ref(args),
            in("rsi") size_of::<CloneArgs>(),
            in("r12") given,
            in("r13") run as usize,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the system call changes x0 alone.
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x20",
            "blr x21",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone3,
            inlateout("x0") ptr::from_ref(args) => outcome,
            in("x1") size_of::<CloneArgs>(),
            in("x20") given,
            in("x21") run as usize,
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (args, run, given);
        outcome = -libc::c_long::from(Errno::ENOSYS as i32);
    }
    match i32::try_from(outcome) {
        Ok(pid @ 0..) => Ok(pid),
        Ok(error) => Err(Errno::from_raw(-error)),
        Err(_) => Err(Errno::EOVERFLOW),
    }
}
